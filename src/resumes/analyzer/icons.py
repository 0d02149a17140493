"""The fixed icon set that the icon field draws from (docs/format.md, Sections).

The names come from the public documentation of the service that the format belongs to. They are
for warnings only: an icon that is not listed here is kept.
"""

# fmt: off
ICONS = frozenset(
    {
        "001-free-plus", "02-free-check-mark", "03-free-search-find", "04-eye",
        "05-pin-map", "06-free-cog-gear", "07-folder-open", "08-email-envelope",
        "09-free-flash", "10-infinity", "100-picasa", "101-target-01", "102-megaphone",
        "103-address", "104-free-plane-airport", "105-hiking-01", "106-free-home-1",
        "107-football-01", "108-baseball-01", "109-map", "11-light-up", "110-run-01",
        "111-mountine-01", "112-table-tennis-01", "113-yoga-01", "114-swimming-01",
        "115-tennis-01", "116-volleyball-01", "117-weight-01", "118-surf-01",
        "119-soccer-01", "12-paper-clip", "120-snowboard-01", "121-free-basketball-01",
        "122-bike-01", "123-skate-01", "124-golf", "125-leaf-1", "126-droplet",
        "127-winter-01", "128-fire-01", "129-free-heart", "13-trash-bin", "130-gamepad",
        "131-smiley-frown", "132-smile", "133-magic-wand", "135-glass", "136-bomb",
        "137-sword-01", "138-superman-01", "139-free-diamond-01", "14-free-talk-chat",
        "140-shoe-01", "141-binocles-01", "142-quote-right", "143-feather", "144-chess-01",
        "145-group", "146-female", "147-free-male", "148-brain-01", "149-cat-01",
        "15-tools", "150-bone", "151-dog-01", "152-ninja-01", "153-deer-01",
        "154-carrot-01", "155-healty-01", "156-robot-01", "157-horse-01", "158-luck-01",
        "159-peace-01", "16-like", "160-yinyung-01", "17-link", "19-volunteer-01",
        "20-target", "21-free-star", "22-free-star-half", "23-free-star-two", "24-key",
        "25-free-facebook", "26-linkedin", "27-pinterest-1", "28-instagram", "29-twitter",
        "30-youtube", "31-google-plus", "32-windows", "33-apple", "34-behance", "35-github",
        "36-book", "37-free-brush", "38-free-pencil", "39-crop", "40-free-calendar",
        "41-bell-1", "42-free-call-phone", "43-free-clock", "44-free-lightbulb",
        "45-floppy", "46-free-screen-desktop", "47-mobile", "48-file-text", "49-ruler-01",
        "50-cloud", "51-harddrive", "52-window-list", "53-flow-tree", "54-free-code",
        "55-bug", "56-database", "57-gauge", "58-free-share", "59-seo-01", "60-talk-01",
        "61-free-project-01", "62-plan-01", "63-paperplane-01", "64-rocket", "65-legal",
        "66-doctor-hearth-01", "67-doctor-01", "68-hourglass", "69-bitcoin", "70-globe",
        "71-translate-01", "72-truck", "73-mic", "75-free-music-note", "76-guitar-01",
        "76-piano-01", "77-awardplace-01", "78-awardplace-02", "79-awardplace-03",
        "80-medal-01", "81-free-graduation-cap", "82-crown-01", "83-free-prize-award",
        "84-flag", "85-science-01", "86-science-laboratory", "87-cc", "88-certificate-01",
        "89-basket", "90-tag-2", "91-new", "92-hear-01", "93-puzzle", "94-marketing-01",
        "95-chart-bar", "96-chart-pie", "97-filmstrip", "98-free-video-camera",
        "99-free-camera", "accessible", "anchor-1", "angellist", "battery-charging",
        "black-tie", "car-1", "child", "code", "dice", "discord-logo", "dollar", "dribble",
        "facebook-square", "figma", "flag-goal", "flickr", "gears-setting", "git-square",
        "github", "github-square", "google-plus-square", "handshake", "headphone",
        "holdingheart", "kaggle-brands", "lightbulb", "mappinned", "medium", "pinterest",
        "pinterest-square", "planet", "qq", "quora", "rain", "recycle", "reddit",
        "reddit-square", "renren", "renren-1", "ribbon", "robot", "rocket", "skype",
        "skype-1", "slideshare", "snow", "social-500px", "social-blogger", "social-medium",
        "social-reddit", "sort-alpha-asc", "soundcloud", "spotify", "stack-exchange",
        "stack-overflow", "star", "suitcase", "sun-fill", "tumblr", "tumblr-square",
        "viber-brands", "vimeo", "vimeo-square", "vk", "volleyball", "weibo", "weixin",
        "whatsapp", "wikipedia-w", "wordpress-alt", "youtube-play", "youtube-square",
    }
)
