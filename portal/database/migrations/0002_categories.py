"""The fixed category table. Ids are part of the public interface: never renumber them."""

from tortoise import migrations
from tortoise.migrations import operations as ops

CATEGORIES = (
    (1, "Film & Animation"),
    (2, "Music"),
    (3, "Sports"),
    (4, "News & Politics"),
    (5, "Education"),
    (6, "Science & Technology"),
    (7, "Gaming"),
    (8, "Comedy"),
    (9, "Entertainment"),
    (10, "How-to & Style"),
    (11, "Food & Cooking"),
    (12, "Travel & Events"),
    (13, "Nature & Animals"),
    (14, "Autos & Vehicles"),
    (15, "People & Society"),
    (16, "Business & Products"),
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0001_initial")]

    operations = [
        ops.RunSQL(
            [
                ("INSERT INTO categories (id, name) VALUES ($1, $2)", list(row))
                for row in CATEGORIES
            ],
            reverse_sql="DELETE FROM categories",
        )
    ]
