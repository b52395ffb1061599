"""The incident page: one HTML file that shows a run to somebody who has none of our tools.

In: an `incident.Incident`, values that were found before: a run, its verdict, what a replay came to, findings. Out: the
text of one page from `page.page`, which refers to nothing outside itself. `document` builds the JSON that the page's
script shows, `page` what is readable without it; `calls.js`, `detail.js` and the other assets lie beside them and are
put in whole. Whatever came out of a trace passes `inert` on this side and `text.js` on the other. To add a section,
write one file with a function from `Incident` to `markup.Html` and name it in `page`.
"""
