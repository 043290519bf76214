import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

/**
 * Words that CONTRIBUTING.md retires, with what to write. Each stood for many different things; the field has an exact word for
 * each of them.
 */
const retired: Readonly<Record<string, string>> = {
  tell: 'record, log, publish, report or notify',
  tells: 'records, logs, publishes, reports or notifies',
  telling: 'recording, logging, publishing, reporting or notifying',
  told: 'recorded, logged, published, reported or notified',
  say: 'report, state, print or log',
  says: 'reports, states, prints or logs',
  saying: 'reporting, stating, printing or logging',
  said: 'reported, stated, printed or logged',
  hear: 'receive',
  hears: 'receives',
  heard: 'received',
  know: 'the fact itself',
  knows: 'the fact itself',
  mend: 'fix or repair',
  mends: 'fixes or repairs',
  mended: 'fixed or repaired',
  whoever: 'the client, user or process',
  nobody: 'no client, user or process',
  anew: 'again',
  news: 'changes, updates or messages',
}

/**
 * Word order that a reader has to translate, with what to write. Kubernetes' own sentences ("must be no more than 63
 * characters") stay as they are.
 */
const phrases: readonly (readonly [phrase: RegExp, write: string])[] = [
  [
    /(?<!\bthere )\b(?:is|are|was|were|be) no (?!longer\b|more than\b|value when\b|faster\b)\S/i,
    'is not a, or invalid',
  ],
  [/(?<!\bthere )\b(?:is|are|was|were|be) none\b/, 'invalid, or does not count'],
  [/(?<!\band) no more(?=[.,;:)'"`]| is\b| are\b|$)/, 'no longer'],
  [/\bstands? without\b/, 'works without'],
  [/\b[Gg]o(?:es|ing)? on (?:asking|without)\b/, 'still, or continues without'],
  [/\bsomething else than\b/, 'not a, or invalid'],
  [/\bCannot understand\b/, 'Cannot parse'],
  [/\bname of DNS\b/, 'DNS name'],
  [
    /\b(?:[Aa]ddress(?:es)?|[Rr]anges?|[Bb]locks?|[Ff]leets?|[Pp]refix(?:es)?|[Pp]ackets?|[Cc]lients?|Services?|[Ss]ockets?|[Ll]inks?|hostIP) of IPv[46]\b/,
    'IPv6 address, IPv6-only fleet',
  ],
]

const root = fileURLToPath(new URL('../..', import.meta.url))
/** This file names the words and phrases. The changelog's entries and the measurements are not rewritten. */
const exempt = /^test\/words\.test\.ts$/
const histories = /^(?:CHANGELOG|docs\/figures)\.md$/
const files = execFileSync(
  'git',
  [
    'ls-files',
    '-z',
    '--',
    ...['*.ts', '*.tsx', '*.mjs', '*.css', '*.html', '*.md', '*.sh', '*.yaml', '*.yml', '*.service', 'scripts'],
  ],
  { cwd: root, encoding: 'utf8' },
)
  .split('\0')
  .filter((path) => path !== '' && !exempt.test(path))

test('names, messages, comments and documents avoid the retired words', async (t) => {
  t.ok(files.length > 300, `${files.length} files`)
  t.same(
    files.flatMap((path) => retiredIn(readFileSync(join(root, path), 'utf8')).map((found) => `${path}:${found}`)),
    [],
  )
})

test('a retired word is found in sentences and in names', async (t) => {
  t.same(retiredIn('first\n// The node is told.\nconst toldWaiting = newsOf(x)\n'), [
    '2: told (write recorded, logged, published, reported or notified)',
    '3: told (write recorded, logged, published, reported or notified)',
    '3: news (write changes, updates or messages)',
  ])
  t.same(retiredIn('storytelling, unknown, Newspaper, essay'), [])
})

test('names, messages, comments and documents avoid the retired phrases', async (t) => {
  t.same(
    files
      .filter((path) => !histories.test(path))
      .flatMap((path) => phrasesIn(readFileSync(join(root, path), 'utf8')).map((found) => `${path}:${found}`)),
    [],
  )
})

test('a retired phrase is found wherever it stands, and not where the words mean what they usually do', async (t) => {
  const found = (text: string) => phrasesIn(text).length
  for (const text of [
    '`pi-9 is no Service or address`',
    'first line\n// an attempt that fails is no failure',
    '/** undefined: it is none. */',
    'Pods removed: their node has them no more',
    '`Goes on asking for a certificate`',
    'The endpoint cannot be opened, going on without it',
    'All of it stands without a controller',
    'Docker answered with something else than HTTP',
    'Cannot understand /proc/loadavg',
    'an address of IPv6, and fleets of IPv6 alone',
  ]) {
    t.equal(found(text), 1, text)
  }
  for (const text of [
    'There is no node pi-1',
    'where there are none',
    'must be no more than 63 characters',
    'The certificate is no longer valid',
    'the rights of its user and no more',
    'an IPv6 address, and routes of IPv4',
  ]) {
    t.equal(found(text), 0, text)
  }
})

test('comments name their subject, and do not begin with "Of"', async (t) => {
  t.same(
    files
      .filter((path) => !path.endsWith('.md'))
      .flatMap((path) => withoutSubjectIn(readFileSync(join(root, path), 'utf8')).map((line) => `${path}:${line}`)),
    [],
  )
})

test('a comment without a subject is found wherever it stands', async (t) => {
  const text = 'a\n/** Of the node. */\n * Of several files the last.\nb // Of a pod\n# Of Debian\nmessage = `Of it`\n'
  t.same(withoutSubjectIn(text), [2, 3, 4, 5])
  t.same(withoutSubjectIn('/** Office of the node. */\n/** Range of the node. */\n'), [])
})

/** Lines with a comment that begins with "Of". */
function withoutSubjectIn(text: string): number[] {
  return text.split('\n').flatMap((line, index) => (/(^|\s)(\/\*\*?|\*|\/\/|#) Of /.test(line) ? [index + 1] : []))
}

/** Lines with a phrase of `phrases`. */
function phrasesIn(text: string): string[] {
  return text.split('\n').flatMap((line, index) => {
    const found = phrases.find(([phrase]) => phrase.test(line))
    return found === undefined ? [] : [`${index + 1}: ${found[0].exec(line)?.[0]} (write ${found[1]})`]
  })
}

function retiredIn(text: string): string[] {
  return text.split('\n').flatMap((line, index) =>
    wordsOf(line)
      .filter((word) => Object.hasOwn(retired, word))
      .map((word) => `${index + 1}: ${word} (write ${retired[word]})`),
  )
}

/** Lower-case words; a camelCase name is as many words as it has humps. */
function wordsOf(line: string): string[] {
  return (line.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? []).map((word) => word.toLowerCase())
}
