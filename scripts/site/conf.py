# Sphinx reads this file. `npm run site` starts it in the root of the repository (site.ts).
import os
import re

project = 'rollout-group'
html_title = f"rollout-group {os.environ['SITE_VERSION']}"
extensions = ['myst_parser']
include_patterns = ['docs/**.md', 'examples/**.md', '*.md']
root_doc = 'docs/README'
html_theme = 'furo'
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_last_updated_fmt = None
pygments_style = 'friendly'
# Links name headings as GitHub does.
myst_heading_anchors = 4
# Shown commands mix a language with output, and Kubernetes accepts YAML that Pygments does not know.
suppress_warnings = ['misc.highlighting_failure']

REPOSITORY = os.environ['SITE_SOURCE']
LINK = re.compile(r'\]\(((?!https?:|#|mailto:)[^)\s]+)\)')

# The navigation, which the pages themselves do not contain. Each page must be in it.
NAVIGATION = {
    'Start': ['getting-started', 'concepts', '/README'],
    'Describe a group': ['strategies', 'waves', 'gates', 'windows', 'conditions', 'notifications', 'policy-tests'],
    'Review a change': ['plan', 'review', 'pull-requests', 'approved-plans', 'simulate', 'sources', 'output'],
    'Operate': ['install', 'helm', 'people', 'webhook', 'argo-cd', 'flux', 'runbooks'],
    'Migrate': ['migrate-from-rollout-operator', 'migrate-from-other-operators'],
    'Reference': ['command-line', 'exit-codes', 'rules', 'findings', 'agent', 'kinds/*'],
    'Examples': ['/examples/README', '/examples/*/README'],
    'The project': ['simulation', 'deprecation-policy', '/ARCHITECTURE', '/CONTRIBUTING', '/SECURITY', '/CHANGELOG', 'decisions/*'],
}


def navigation():
    def tree(caption, pages):
        glob = ':glob:\n' if any('*' in page for page in pages) else ''
        return '\n'.join([f'```{{toctree}}\n:hidden:\n:caption: {caption}\n{glob}', *pages, '```\n'])

    return '\n'.join(tree(caption, pages) for caption, pages in NAVIGATION.items())


def absolute_links(app, docname, content):
    """Lets links to folders and to files that are no pages lead to the repository. A link to a missing file is an error of the build."""
    folder = os.path.dirname(docname)

    def replace(match):
        path, _, anchor = match.group(1).partition('#')
        target = os.path.normpath(os.path.join(folder, path))
        if path.endswith('.md') or not os.path.exists(os.path.join(app.srcdir, target)):
            return match.group(0)
        kind = 'tree' if os.path.isdir(os.path.join(app.srcdir, target)) else 'blob'
        return f']({REPOSITORY}/{kind}/main/{target}{"#" + anchor if anchor else ""})'

    content[0] = LINK.sub(replace, content[0])
    if docname == root_doc:
        content[0] += '\n' + navigation()


def setup(app):
    app.connect('source-read', absolute_links)
