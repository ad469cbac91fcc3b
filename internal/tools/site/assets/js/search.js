// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Searches all pages in the browser. index.json has the texts of all sections; a query is looked up in each of them,
// which takes milliseconds and needs no index.
(() => {
  const root = new URL('..', document.currentScript.src);
  const maxPages = 12;
  const maxSections = 3; // of a page
  let loading;

  const words = text => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

  async function fetchPages() {
    const response = await fetch(new URL('index.json', root));
    if (!response.ok) {
      throw new Error(`${response.url}: ${response.status}`);
    }
    const pages = await response.json();
    for (const page of pages) {
      page.words = words(page.title);
      for (const section of page.sections) {
        section.words = words(section.heading);
        section.lower = section.text.toLowerCase();
      }
    }
    return pages;
  }

  // How well a term fits the words of a title: a whole word counts most, and a word of a short title more than one of a
  // long title.
  function fit(title, term) {
    const best = Math.max(0, ...title.map(w => w === term ? 4 : w.startsWith(term) ? 3 : w.includes(term) ? 1 : 0));
    return best && best / Math.sqrt(title.length);
  }

  // The score of a section; 0 if one of the terms is neither in it nor in the title of its page.
  function score(page, section, query) {
    let sum = 0;
    let own = section.anchor === '';
    for (const term of query.terms) {
      const inTitle = 20 * fit(page.words, term);
      const inHeading = 10 * fit(section.words, term);
      const inText = Math.min(8, section.lower.split(term).length - 1);
      if (inTitle + inHeading + inText === 0) {
        return 0;
      }
      own ||= inHeading + inText > 0;
      sum += inTitle + inHeading + inText;
    }
    if (section.lower.includes(query.phrase)) {
      sum += 10;
    }
    if (page.title.toLowerCase() === query.phrase) {
      sum += 100;
    }
    if (section.heading.toLowerCase() === query.phrase) {
      sum += 20;
    }
    return own ? sum : 0;
  }

  function find(pages, query) {
    const found = [];
    for (const page of pages) {
      const sections = page.sections.map(section => ({section, score: score(page, section, query)}))
        .filter(s => s.score > 0).sort((a, b) => b.score - a.score);
      if (sections.length) {
        found.push({page, score: sections[0].score, sections: sections.slice(0, maxSections).map(s => s.section)});
      }
    }
    return found.sort((a, b) => b.score - a.score).slice(0, maxPages);
  }

  function element(name, className, ...children) {
    const e = document.createElement(name);
    e.className = className;
    e.append(...children);
    return e;
  }

  // The text as nodes, with the terms marked.
  function marked(text, query) {
    const escaped = query.terms.map(t => t.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return text.split(new RegExp(`(${escaped.join('|')})`, 'iu'))
      .map((part, i) => i % 2 ? element('span', 'match', part) : part);
  }

  // The part of a text around the first term that is in it.
  function excerpt(section, query) {
    const at = Math.max(0, ...query.terms.map(t => section.lower.indexOf(t)).filter(i => i > 30).slice(0, 1));
    const from = at ? section.text.indexOf(' ', at - 30) + 1 : 0;
    return (from ? '… ' : '') + section.text.slice(from, from + 160);
  }

  function resultNodes(found, query) {
    const nodes = [];
    for (const {page, sections} of found) {
      nodes.push(element('div', 'prefix', [...page.crumbs, page.title].join(' > ')));
      for (const section of sections) {
        const link = element('a', '',
          element('div', 'title', ...marked(section.heading || page.title, query)),
          element('div', 'excerpt', ...marked(excerpt(section, query), query)));
        link.href = new URL(page.path + (section.anchor && '#' + section.anchor), root);
        nodes.push(element('li', '', link));
      }
    }
    return nodes;
  }

  function connect(wrapper) {
    const input = wrapper.querySelector('.search-input');
    const results = wrapper.querySelector('.search-results');
    const links = () => [...results.querySelectorAll('a')];
    const show = shown => results.classList.toggle('hx-hidden', !shown);
    const activate = link => {
      links().forEach(l => l.classList.toggle('active', l === link));
      link?.scrollIntoView({block: 'nearest'});
    };
    const note = text => results.replaceChildren(element('span', 'no-result', text));

    async function search() {
      const phrase = input.value.trim().toLowerCase();
      const query = {phrase, terms: words(phrase)};
      show(query.terms.length > 0);
      if (query.terms.length === 0) {
        return;
      }
      try {
        const pages = await (loading ??= fetchPages());
        if (input.value.trim().toLowerCase() !== phrase) {
          return; // what was typed since is searched by itself
        }
        const nodes = resultNodes(find(pages, query), query);
        results.replaceChildren(...nodes);
        nodes.length ? activate(links()[0]) : note('No results found.');
      } catch (error) {
        loading = undefined;
        note(`The search does not work: ${error.message}`);
      }
    }

    function steer(event) {
      const all = links();
      const active = all.findIndex(l => l.classList.contains('active'));
      switch (event.key) {
        case 'ArrowUp': activate(all[Math.max(active - 1, 0)]); break;
        case 'ArrowDown': activate(all[Math.min(active + 1, all.length - 1)]); break;
        case 'Enter': all[active]?.click(); break;
        case 'Escape': input.value = ''; input.blur(); show(false); break;
        default: return;
      }
      event.preventDefault();
    }

    // Fetched before the first letter is typed. An error is shown by the search.
    input.addEventListener('focus', () => (loading ??= fetchPages()).catch(() => {}));
    input.addEventListener('focus', search);
    input.addEventListener('input', search);
    input.addEventListener('keydown', steer);
    results.addEventListener('mousemove', event => event.target.closest('a') && activate(event.target.closest('a')));
    results.addEventListener('click', event => event.target.closest('a') && show(false));
    document.addEventListener('mousedown', event => wrapper.contains(event.target) || show(false));
    document.addEventListener('keydown', event => {
      const typing = /^(input|select|textarea)$/i.test(document.activeElement?.tagName);
      const wanted = event.key === 'k' && (event.ctrlKey || event.metaKey) || event.key === '/' && !typing;
      if (wanted && wrapper.clientHeight > 0) {
        event.preventDefault();
        input.focus();
      }
    });
  }

  document.querySelectorAll('.search-wrapper').forEach(connect);
})();
