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

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Folders without retired words. Add a folder once it is clean. */
const cleanFolders = [
  'agent',
  'api',
  'bench',
  'broker-controller/access',
  'broker-controller/apiserver',
  'broker-controller/broker',
  'broker-controller/commands',
  'broker-controller/controllers',
  'broker-controller/home-assistant',
  'broker-controller/household',
  'broker-controller/notifications',
  'broker-controller/own-certificates',
  'broker-controller/replicas',
  'broker-controller/scheduler',
  'broker-controller/sessions',
  'broker-controller/store',
  'broker-controller/testing',
  'broker-controller/usage',
  'certs',
  'daemon',
  'docs',
  'scripts',
  'systemd',
  'test',
]
/** Folders and files with comments that begin with "Of", which lack their subject. Remove one once it is clean. */
const withoutSubjects = [
  'agent/adapters/disk/',
  'agent/configuration.ts',
  'agent/pods/volumes/',
  'api/storage/',
  'broker-controller/apiserver/',
  'broker-controller/broker/',
  'broker-controller/cel/',
  'broker-controller/commands/',
  'broker-controller/controllers/volumes/',
  'broker-controller/page/',
  'certs/',
]
/** This file names the words. */
const exempt = /^test\/words\.test\.ts$/
const files = execFileSync(
  'git',
  ['ls-files', '-z', '--', '*.ts', '*.md', '*.sh', '*.yaml', '*.yml', '*.service', 'scripts'],
  {
    cwd: root,
    encoding: 'utf8',
  },
)
  .split('\0')
  .filter((path) => path !== '' && !exempt.test(path) && isClean(path))

function isClean(path: string): boolean {
  return /\.md$|^broker-controller\/[^/]*$/.test(path) || cleanFolders.some((folder) => path.startsWith(`${folder}/`))
}

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

test('comments name their subject, and do not begin with "Of"', async (t) => {
  const named = files.filter(
    (path) => !path.endsWith('.md') && !withoutSubjects.some((prefix) => path.startsWith(prefix)),
  )
  t.ok(named.length > 300, `${named.length} files`)
  t.same(
    named.flatMap((path) => withoutSubjectIn(readFileSync(join(root, path), 'utf8')).map((line) => `${path}:${line}`)),
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
