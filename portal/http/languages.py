"""Language of a response, and translation into it.

A page is in the language of its `lang` parameter, of the reader's account, of the cookie that the
reader's choice set, of their browser, or of the site, the first of these that exists. Scripts send
the language of their page with each request. The API answers in English, unless a page asks.
The catalogues are read by the standard library's gettext. Adding one adds a language.
"""

import gettext as catalogues
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape
from quart import Quart, current_app, has_request_context, request
from werkzeug.datastructures import LanguageAccept
from werkzeug.http import parse_accept_header

from portal.config import Config
from portal.database.outages import skipped_in_outage
from portal.errors import PortalError
from portal.http.auth import principal
from portal.http.cookies import LANGUAGE_COOKIE
from portal.http.server.context import state_of
from portal.locale.messages import Message

ENGLISH = "en"
LOCALE = Path(__file__).parents[1] / "locale"
DOMAIN = "portal"
# Parameter of addresses, and header of requests of a page's scripts.
PARAMETER = "lang"
HEADER = "Portal-Language"
# Languages written from right to left, by their code (CLDR). The last one is that of tests.
RIGHT_TO_LEFT = frozenset({"ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi", "xr"})
# Codes of the languages of tests, which nobody is offered.
PSEUDO = frozenset({"xx", "xr"})
MAX_PREFERENCES = 20
# Language of the current request; empty until a text is needed. A page has hundreds of texts, and
# the request's own state takes ten times as long to find.
_language: ContextVar[str] = ContextVar("language", default="")


@cache
def catalogue_of(language: str) -> catalogues.NullTranslations:
    """Return the catalogue of a language; an empty one, which gives English, if there is none."""
    return catalogues.translation(DOMAIN, LOCALE, languages=[language], fallback=True)


@cache
def available() -> Mapping[str, str]:
    """Return the names of the languages in themselves, by code, in the order of the names."""
    codes = {path.parents[1].name for path in LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.mo")}
    names = {code: _name_of(catalogue_of(code)) for code in codes}
    names[ENGLISH] = "English"
    return dict(sorted(names.items(), key=lambda entry: entry[1].casefold()))


def _name_of(catalogue: catalogues.NullTranslations) -> str:
    # Translators: the name of your language in your language, such as Deutsch, in a list.
    return catalogue.pgettext("name of this language", "English")


@cache
def offered() -> Mapping[str, str]:
    """Return the names of the languages that readers can choose, by code."""
    return {code: name for code, name in available().items() if code not in PSEUDO}


def install_languages(app: Quart) -> None:
    """Choose the language of each request, and provide translation to templates."""
    app.jinja_env.add_extension("jinja2.ext.i18n")
    app.jinja_env.policies["ext.i18n.trimmed"] = True
    # Templates are compiled for functions that fill in the values themselves.
    app.jinja_env.newstyle_gettext = True  # type: ignore[attr-defined]  # by the extension
    app.jinja_env.globals |= {
        "_": _marked,
        "gettext": _marked,
        "ngettext": _marked_plural,
        "pgettext": _marked_meaning,
    }
    app.add_template_filter(translated)
    app.jinja_env.globals.update(
        page_language=current_language, page_direction=direction, page_languages=offered
    )
    app.before_request(_choose)


def current_language() -> str:
    """Return the code of the language of the current response; English outside of requests."""
    language = _language.get()
    if language or not has_request_context():
        return language or ENGLISH
    return ENGLISH if _is_for_program() else _use(_preferred())


def direction() -> str:
    """Return the direction of the current language, as the value of HTML's `dir`."""
    return "rtl" if current_language() in RIGHT_TO_LEFT else "ltr"


def gettext(message: str, /, **values: Any) -> str:
    """Return a text in the current language, with values for its placeholders."""
    text = _catalogue().gettext(message)
    return _filled(text, values)


def ngettext(message: str, plural: str, count: int, /, **values: Any) -> str:
    """Return a text in the form for a number, in the current language."""
    text = _catalogue().ngettext(message, plural, count)
    return _filled(text, values)


def pgettext(context: str, message: str, /, **values: Any) -> str:
    """Return a text, of which English has only one word for several meanings."""
    text = _catalogue().pgettext(context, message)
    return _filled(text, values)


def translated(value: Any) -> Any:
    """Return a message in the current language, and any other value unchanged."""
    if not isinstance(value, Message):
        return value
    language = current_language()
    return str(value) if language == ENGLISH else value.in_language(catalogue_of(language))


def translating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one, and translates the message that it returns."""

    @wraps(function)
    def translate(*args: Any) -> Any:
        return translated(function(*args))

    return translate


def _filled(text: str, values: Mapping[str, Any]) -> str:
    """Return a text with values, of which messages are translated."""
    return text % {name: translated(value) for name, value in values.items()} if values else text


def _marked(message: str, /, **values: Any) -> Markup:
    """Return a text of a template as markup, with escaped values; `%%` is a percent sign."""
    text = _text_of(current_language(), "", message)
    return _filled_markup(text, values) if values else text


def _marked_meaning(context: str, message: str, /, **values: Any) -> Markup:
    """Return a text of several meanings as markup."""
    text = _text_of(current_language(), context, message)
    return _filled_markup(text, values) if values else text


def _marked_plural(message: str, plural: str, num: int, /, **values: Any) -> Markup:
    """Return a text in the form for a number as markup. The number is also a value, `num`."""
    text = _catalogue().ngettext(message, plural, num)
    return _filled_markup(text, {"num": num, **values})


def _filled_markup(text: str, values: Mapping[str, Any]) -> Markup:
    escaped = {name: escape(translated(value)) for name, value in values.items()}
    # The operator of `Markup` would wrap each value to escape it, which takes twice as long.
    return Markup(str.__mod__(text, escaped))  # noqa: S704  # by translators


@cache
def _text_of(language: str, context: str, message: str) -> Markup:
    """Return a text as markup: ready if it has no values, else to be filled."""
    catalogue = catalogue_of(language)
    text = catalogue.pgettext(context, message) if context else catalogue.gettext(message)
    return Markup(text if "%(" in text else text.replace("%%", "%"))  # noqa: S704  # by translators


def _catalogue() -> catalogues.NullTranslations:
    return catalogue_of(current_language())


async def _choose() -> None:
    """Choose the language that the request names, or that of the reader's account.

    If there is neither, the first text of a page chooses.
    """
    _language.set("")
    if language := _named():
        _use(language)
    elif not _is_for_program():
        with skipped_in_outage(), suppress(PortalError):
            own = (await principal()).language
            if own in available():
                _use(own)


def _use(language: str) -> str:
    """Have the current response in a language, on which it then depends."""
    state_of(request.scope).language = language
    _language.set(language)
    return language


def _is_for_program() -> bool:
    """Return whether the API answers, whose texts are English unless a page asks."""
    return request.path.startswith("/api/")


def _named() -> str:
    """Return the language that the address or a page's script names; empty if none is available."""
    parameter = request.args.get(PARAMETER, "") if request.query_string else ""
    for language in (parameter, request.headers.get(HEADER, "")):
        if language in available():
            return language
    return ""


def _preferred() -> str:
    """Return the language of a reader without a choice in an account."""
    config: Config = current_app.extensions["portal"].config
    chosen = request.cookies.get(LANGUAGE_COOKIE, "")
    if chosen in offered():
        return chosen
    accepted = _accepted(request.headers.get("Accept-Language", ""))
    return accepted or (config.site_language if config.site_language in available() else ENGLISH)


# Browsers send few different lists.
@lru_cache(maxsize=1024)
def _accepted(preferences: str) -> str:
    """Return the first language of an Accept-Language header that is offered; empty for none."""
    for language, quality in parse_accept_header(preferences, LanguageAccept)[:MAX_PREFERENCES]:
        code = language.partition("-")[0].lower()
        if quality > 0 and code in offered():
            return code
    return ""
