"""Crawls a site on this machine, or a directory of pages, breadth first.

The parameters are one JSON object on standard input, the report one on standard output.
Only loopback hosts and files below the first page's directory are read.
"""

import fnmatch
import ipaddress
import json
import os
import sys
import urllib.parse
import urllib.request
from collections import deque
from html.parser import HTMLParser

MAX_BYTES = 1 << 20  # of one page


class Refused(Exception):
    """An address that must not be read."""


class Page(HTMLParser):
    """Takes the title and the links out of a page."""

    def __init__(self):
        super().__init__()
        self.title, self.links, self.in_title = "", [], False

    def handle_starttag(self, tag, attrs):
        self.in_title = tag == "title"
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.links.append(href)

    def handle_endtag(self, tag):
        self.in_title = False

    def handle_data(self, data):
        if self.in_title:
            self.title += data


def check(url, root):
    """Raises Refused unless the address is on this machine."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise Refused("a file on another machine")
        path = os.path.realpath(urllib.parse.unquote(parts.path))
        if root is None or os.path.commonpath([path, root]) != root:
            raise Refused("a file outside of the site's directory")
        return
    if parts.scheme not in ("http", "https"):
        raise Refused("neither http nor a file")
    host = parts.hostname or ""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise Refused("not on this machine")


class SameMachine(urllib.request.HTTPRedirectHandler):
    """Follows redirections within this machine only."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        check(newurl, None)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def read(opener, url, timeout):
    """The page at an address: its links and title."""
    with opener.open(url, timeout=timeout) as answer:
        kind = answer.headers.get_content_type()
        body = answer.read(MAX_BYTES)
        charset = answer.headers.get_content_charset() or "utf-8"
    page = Page()
    if kind == "text/html":
        try:
            page.feed(body.decode(charset, "replace"))
        except LookupError:  # an encoding that nobody knows
            page.feed(body.decode("utf-8", "replace"))
    return page


def crawl(params):
    start = urllib.parse.urldefrag(params["url"]).url
    parts = urllib.parse.urlsplit(start)
    root = None
    if parts.scheme == "file":
        root = os.path.realpath(os.path.dirname(urllib.parse.unquote(parts.path)))
    check(start, root)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), SameMachine)
    pages, broken, foreign, left = [], [], set(), 0
    seen, todo = {start}, deque([(start, 0, None)])
    while todo:
        if len(pages) + len(broken) >= params["max_pages"]:
            left = len(todo)
            break
        url, depth, origin = todo.popleft()
        print(f"reading {url}", file=sys.stderr)
        try:
            page = read(opener, url, params["timeout_seconds"])
        except (OSError, ValueError, Refused) as e:
            broken.append({"url": url, "linked_from": origin, "error": str(e)})
            continue
        links = []
        for href in page.links:
            to = urllib.parse.urldefrag(urllib.parse.urljoin(url, href.strip())).url
            target = urllib.parse.urlsplit(to)
            if (target.scheme, target.netloc) != (parts.scheme, parts.netloc):
                foreign.add(to)
                continue
            links.append(to)
            wanted = any(fnmatch.fnmatch(target.path or "/", p) for p in params["patterns"])
            if to in seen or depth >= params["depth"] or not wanted:
                continue
            seen.add(to)
            try:
                check(to, root)
            except Refused as e:
                broken.append({"url": to, "linked_from": url, "error": str(e)})
                continue
            todo.append((to, depth + 1, url))
        pages.append({"url": url, "depth": depth, "title": " ".join(page.title.split()), "links": len(links)})
    return {"start": start, "count": len(pages), "pages": pages, "broken": broken, "foreign_links": sorted(foreign), "not_read": left}


def main():
    try:
        report = crawl(json.load(sys.stdin))
    except Refused as e:
        sys.exit(f"site-crawler: this address is refused: {e}")
    except (ValueError, KeyError) as e:
        sys.exit(f"site-crawler: the parameters cannot be used: {e}")
    json.dump(report, sys.stdout, indent=1)
    print()
    if report["count"] == 0:
        sys.exit("site-crawler: not even the first page could be read")


main()
