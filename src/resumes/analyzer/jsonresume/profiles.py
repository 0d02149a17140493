"""Profiles on social networks: `findMeOnline` in the analyzer format."""

from typing import Final

from resumes.analyzer.jsonresume.entries import NO_PLACE, Entry
from resumes.analyzer.jsonresume.parts import Fields

_ICONS: Final = {
    "angellist": "angellist",
    "behance": "34-behance",
    "discord": "discord-logo",
    "dribbble": "dribble",
    "facebook": "25-free-facebook",
    "figma": "figma",
    "flickr": "flickr",
    "github": "35-github",
    "instagram": "28-instagram",
    "kaggle": "kaggle-brands",
    "linkedin": "26-linkedin",
    "medium": "medium",
    "pinterest": "27-pinterest-1",
    "quora": "quora",
    "reddit": "reddit",
    "skype": "skype",
    "slideshare": "slideshare",
    "soundcloud": "soundcloud",
    "spotify": "spotify",
    "stack overflow": "stack-overflow",
    "stackoverflow": "stack-overflow",
    "tumblr": "tumblr",
    "twitter": "29-twitter",
    "vimeo": "vimeo",
    "vk": "vk",
    "weibo": "weibo",
    "whatsapp": "whatsapp",
    "x": "29-twitter",
    "youtube": "30-youtube",
}
"""The icon of a network by its name in small letters."""


class Network:
    """The network's name is the title; the icon goes by it and is not written."""

    fields = ("title", "icon")
    names = ("network",)

    def read(self, entry: Entry, /) -> Fields:
        network = entry.find_text("network")
        if network is None:
            return {}
        icon = _ICONS.get(network.strip().lower())
        return {"title": network, "icon": icon} if icon else {"title": network}

    def write(self, item: Fields, /) -> Fields:
        return {"network": item["title"]} if "title" in item else {}


class Link:
    """The address, or without one the user's name.

    A name beside an address has no place; nothing is told when the address says it too. A link
    that can be no address is written as a name.
    """

    fields = ("link",)
    names = ("url", "website", "username")

    def read(self, entry: Entry, /) -> Fields:
        address = entry.find_text("url", "website")
        username = entry.find_text("username")
        if address is None:
            return {"link": username} if username else {}
        if username and username.strip("@").lower() not in address.lower():
            entry.tell("username", NO_PLACE)
        return {"link": address}

    def write(self, item: Fields, /) -> Fields:
        link = item.get("link", "")
        if not link:
            return {}
        return {"url" if any(mark in link for mark in "/.:") else "username": link}
