-- The words of videos and captions, which search suggests for misspelt words (`videos.words`).

-- Add the words of a search document to `library_words`.
--
-- The trigger's argument is the position at which the word begins in a lexeme: lexemes of videos
-- begin with the letter of their field, those of captions don't. Words are inserted in alphabetical
-- order, so that concurrent transactions rarely deadlock. A transaction that does is not worth
-- failing for its words.
CREATE OR REPLACE FUNCTION learn_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO library_words (word)
    SELECT DISTINCT substr(lexeme, TG_ARGV[0]::int) AS word FROM unnest(NEW.search)
    WHERE substr(lexeme, TG_ARGV[0]::int) ~ '^[^0-9#]{4,40}$' AND NOT EXISTS (
      SELECT FROM library_words WHERE word = substr(lexeme, TG_ARGV[0]::int)
    )
    ORDER BY word
  ON CONFLICT DO NOTHING;
  RETURN NULL;
EXCEPTION WHEN deadlock_detected THEN
  RETURN NULL;
END $$;

DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_trigger
                 WHERE tgrelid = 'publications'::regclass AND tgname = 'learn_words') THEN
    CREATE TRIGGER learn_words AFTER INSERT OR UPDATE OF search ON publications
      FOR EACH ROW EXECUTE FUNCTION learn_words(2);
  END IF;
  IF NOT EXISTS (SELECT FROM pg_trigger
                 WHERE tgrelid = 'captions'::regclass AND tgname = 'learn_words') THEN
    CREATE TRIGGER learn_words AFTER INSERT OR UPDATE OF search ON captions
      FOR EACH ROW EXECUTE FUNCTION learn_words(1);
  END IF;
END $$;
