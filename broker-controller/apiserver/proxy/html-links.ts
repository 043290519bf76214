/**
 * Links of a proxied page that begin with `/`, or name its own server, lead through the proxy: what kube-apiserver does in
 * k8s.io/apimachinery/pkg/util/proxy (Transport). Only values of attributes change; all other bytes of the page stay as they are.
 */

/** The attributes of each element that hold one URL (HTML, and elements of HTML 4 that browsers still read). */
const urlAttributes: ReadonlyMap<string, readonly string[]> = new Map([
  ['a', ['href']],
  ['applet', ['codebase']],
  ['area', ['href']],
  ['audio', ['src']],
  ['base', ['href']],
  ['blockquote', ['cite']],
  ['body', ['background']],
  ['button', ['formaction']],
  ['del', ['cite']],
  ['embed', ['src']],
  ['form', ['action']],
  ['frame', ['longdesc', 'src']],
  ['head', ['profile']],
  ['html', ['manifest']],
  ['iframe', ['longdesc', 'src']],
  ['img', ['longdesc', 'src']],
  ['input', ['formaction', 'src']],
  ['ins', ['cite']],
  ['link', ['href']],
  ['object', ['codebase', 'data']],
  ['q', ['cite']],
  ['script', ['src']],
  ['source', ['src']],
  ['track', ['src']],
  ['video', ['poster', 'src']],
])

/** What is between their tags is text, also where it looks like a tag (HTML, 13.2.5: RCDATA, RAWTEXT and script data). */
const textElements = ['script', 'style', 'textarea', 'title', 'xmp', 'noembed', 'noframes']

/** A tag that is longer stays as it is. */
const longestTag = 64 * 1024

/** `rewrite` gets the value of an attribute as the page has it, with its character references. */
export async function* rewrittenLinks(
  pieces: AsyncIterable<Uint8Array>,
  rewrite: (url: string) => string,
): AsyncGenerator<Uint8Array> {
  const page = linkRewriter(rewrite)
  for await (const piece of pieces) {
    const text = page.next(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString('latin1'))
    if (text !== '') yield Buffer.from(text, 'latin1')
  }
  const rest = page.end()
  if (rest !== '') yield Buffer.from(rest, 'latin1')
}

type Part =
  | { readonly kind: 'text' }
  /** Up to the first match, of `length` characters. */
  | { readonly kind: 'until'; readonly end: RegExp; readonly length: number }
  | { readonly kind: 'tag' }

const endsOfText: ReadonlyMap<string, Part> = new Map(
  textElements.map((name) => [name, { kind: 'until', end: new RegExp(`</${name}`, 'i'), length: name.length + 2 }]),
)

/** Text of one byte a character: all encodings in which a page is sent have ASCII in one byte, but for UTF-16. */
function linkRewriter(rewrite: (url: string) => string) {
  let kept = ''
  let part: Part = { kind: 'text' }
  /** Within a tag: what was looked at, and the quote that is open. */
  let looked = 0
  let quote = ''

  /** What can be passed on; undefined: more is needed. */
  const step = (): string | undefined => {
    switch (part.kind) {
      case 'text':
        return textStep()
      case 'until':
        return untilStep(part)
      case 'tag':
        return tagStep()
    }
  }
  const take = (length: number) => {
    const taken = kept.slice(0, length)
    kept = kept.slice(length)
    return taken
  }
  const textStep = () => {
    const at = kept.indexOf('<')
    if (at < 0) return kept === '' ? undefined : take(kept.length)
    if (at > 0) return take(at)
    if (kept.length < 4 && '<!--'.startsWith(kept)) return undefined
    if (kept.startsWith('<!--')) {
      part = { kind: 'until', end: /-->/, length: 3 }
      return take(2) // `<!-->` is a whole comment
    }
    if (!/^<[a-z]/i.test(kept)) return take(1)
    part = { kind: 'tag' }
    looked = 1
    quote = ''
    return ''
  }
  // The search ends at the first match: a piece may hold thousands of comments.
  const untilStep = ({ end, length }: Part & { readonly kind: 'until' }) => {
    const at = kept.search(end)
    if (at >= 0) {
      part = { kind: 'text' }
      return take(at)
    }
    const passed = kept.length - length + 1
    return passed > 0 ? take(passed) : undefined
  }
  const endTag = () => {
    const tag = take(looked + 1)
    const name = nameOf(tag)
    part = endsOfText.get(name) ?? { kind: 'text' }
    return rewrittenTag(tag, name, rewrite)
  }
  const tagStep = () => {
    for (; looked < kept.length && looked < longestTag; looked++) {
      const character = kept.charAt(looked)
      if (quote === '' && character === '>') return endTag()
      quote = quoteAfter(quote, character)
    }
    if (looked < longestTag) return undefined
    part = { kind: 'text' }
    return take(looked)
  }
  return {
    next(text: string): string {
      kept += text
      const passed: string[] = []
      for (let one = step(); one !== undefined; one = step()) passed.push(one)
      return passed.join('')
    },
    end: () => take(kept.length),
  }
}

function nameOf(tag: string): string {
  return (/^<([^\s/>]*)/.exec(tag)?.[1] ?? '').toLowerCase()
}

/** `tag`: from `<` to `>`. */
function rewrittenTag(tag: string, name: string, rewrite: (url: string) => string): string {
  const wanted = urlAttributes.get(name)
  if (wanted === undefined) return tag
  const parts: string[] = []
  let written = 0
  for (const { attribute, from, to } of valuesIn(tag, name.length + 1)) {
    if (!wanted.includes(attribute)) continue
    parts.push(tag.slice(written, from), rewrite(tag.slice(from, to)))
    written = to
  }
  return parts.join('') + tag.slice(written)
}

/** The attributes that have a value, and where it stands, without its quotes. */
function* valuesIn(tag: string, start: number) {
  const end = tag.length - 1
  const upTo = (pattern: RegExp, at: number) => {
    pattern.lastIndex = at
    return pattern.test(tag) ? pattern.lastIndex : at
  }
  let at = upTo(spaces, start)
  while (at < end) {
    const nameEnd = Math.max(upTo(nameText, at), at + 1)
    const from = upTo(equals, nameEnd)
    if (from === nameEnd) {
      at = upTo(spaces, nameEnd)
      continue
    }
    const attribute = tag.slice(at, nameEnd).toLowerCase()
    const quote = tag.charAt(from)
    if (quote === '"' || quote === "'") {
      const to = tag.indexOf(quote, from + 1)
      if (to < 0) return
      yield { attribute, from: from + 1, to }
      at = upTo(spaces, to + 1)
    } else {
      const to = upTo(plainValue, from)
      yield { attribute, from, to }
      at = upTo(spaces, to)
    }
  }
}

const spaces = /[\s/]+/y
const nameText = /[^\s/>=]+/y
const equals = /\s*=\s*/y
const plainValue = /[^\s>]+/y

/** `quote`: around the value of the present attribute; '': none. */
function quoteAfter(quote: string, character: string): string {
  if (quote !== '') return character === quote ? '' : quote
  return character === '"' || character === "'" ? character : ''
}
