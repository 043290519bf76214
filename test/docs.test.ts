import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { parse } from 'yaml'
import { AgentConfigurationSchema, agentConfiguration, emptyAgentConfiguration } from '../agent/configuration.ts'
import { builtInResources } from '../api/resources.ts'
import { type Topic, topicName, topicRules } from '../api/topics.ts'
import { readControllerCommandLine } from '../broker-controller/commands/command-line.ts'
import {
  ControllerConfigurationSchema,
  controllerConfiguration,
  emptyControllerConfiguration,
} from '../broker-controller/configuration/configuration.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => join('docs', name)),
].filter((path) => path.endsWith('.md'))
const textOf = (page: string) => readFileSync(join(root, page), 'utf8')

test('every path a page names exists', async (t) => {
  const named = pages.flatMap((page) =>
    [
      ...textOf(page).matchAll(
        /`((?:agent|api|broker-controller|certs|daemon|dashboard|docs|scripts|systemd|test)\/[^`\s]*)`/g,
      ),
    ]
      .map(([, path = '']) => path)
      .filter((path) => !/[A-Z]{3}|\*/.test(path))
      .map((path) => ({ page, path })),
  )
  t.ok(named.length > 30)
  t.same(
    named.filter(({ path }) => !existsSync(join(root, path))),
    [],
  )
})

test('every link of a page leads somewhere', async (t) => {
  const links = pages.flatMap((page) =>
    [...textOf(page).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, to = '']) => ({ page, to })),
  )
  t.ok(links.length > 5)
  t.same(
    links.filter(({ page, to }) => !existsSync(join(root, dirname(page), to))),
    [],
  )
})

test('every anchor that a page names is a heading of its page', async (t) => {
  const links = pages.flatMap((page) =>
    [...textOf(page).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)].map(([, to = '', anchor = '']) => ({
      page,
      to: to === '' ? page : join(dirname(page), to),
      anchor,
    })),
  )
  t.ok(links.length > 100)
  t.same(
    links.filter(({ to, anchor }) => !anchorsOf(to).has(anchor)),
    [],
  )
})

/** Anchors of the headings, as GitHub makes them. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = textOf(page).matchAll(/^#+ (.+)$/gm)
  return new Set([...headings].map(([, heading = '']) => anchorOf(heading)))
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

test('lines of prose have at most 120 characters', async (t) => {
  t.ok(pages.length > 20)
  t.same(
    pages.flatMap((page) => longLinesOf(textOf(page)).map((line) => `${page}: ${line}`)),
    [],
  )
})

/** Without tables and blocks of code, whose lines cannot be divided. */
function longLinesOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').split('\n')
  return prose.filter((line) => line.length > 120 && !line.startsWith('|'))
}

test('the page about MQTT matches the code', async (t) => {
  const rows = textOf('docs/mqtt.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, topic = '', from = '', qos, retained]) => ({
      topic: topic.replaceAll('`', ''),
      from: from.startsWith('agent') ? 'node' : 'controller',
      qos: Number(qos),
      retain: retained === 'yes',
    }))
  const kinds = Object.keys(topicRules) as Topic['kind'][]
  const wanted = kinds.map((kind) => {
    const { from, qos, retain } = topicRules[kind]
    return { topic: topicName(anyTopic(kind)).replace('services/0', 'services/SHARD'), from, qos, retain }
  })
  t.same(rows.sort(byTopic), wanted.sort(byTopic))
})

test('the page about configuration lists every field', async (t) => {
  const [, agent = '', controller = ''] = textOf('docs/configuration.md').split(/^## /m)
  t.same(fieldsListed(agent), fieldsOf(AgentConfigurationSchema))
  t.same(fieldsListed(controller), fieldsOf(ControllerConfigurationSchema))
})

test('the page about configuration lists the defaults', async (t) => {
  const [, agent = '', controller = ''] = textOf('docs/configuration.md').split(/^## /m)
  // Who sets how often a node is looked at sets how often it reports, too: documented there.
  for (const [field, value] of documentedDefaults(agent).filter(([field]) => field !== 'nodeStatusUpdateFrequency')) {
    const file = { ...emptyAgentConfiguration, [field]: value }
    t.same(agentConfiguration(file), agentConfiguration(emptyAgentConfiguration), `${field}: ${value}`)
  }
  const line = readControllerCommandLine([])
  if (line.want !== 'run') return t.fail('nothing typed means run')
  const given = { flags: line.flags, isTerminal: true }
  const otherwise = controllerConfiguration({ ...given, file: emptyControllerConfiguration })
  for (const [field, value] of documentedDefaults(controller)) {
    const file = { ...emptyControllerConfiguration, [field]: value }
    t.same(controllerConfiguration({ ...given, file }), otherwise, `${field}: ${value}`)
  }
})

/** Those that are one value, or a map of values. */
function documentedDefaults(section: string): readonly (readonly [field: string, value: unknown])[] {
  const rows = [...section.matchAll(/^\| `(\w+)` \| (`[^|]*) \|/gm)]
  return rows.map(([, field = '', cell = '']) => {
    const values = [...cell.matchAll(/`([^`]*)`/g)].map(([, value = '']) => value)
    const isMap = values.every((value) => value.includes(': '))
    return [field, isMap ? parse(`{${values.join(', ')}}`) : parse(values[0] ?? '')] as const
  })
}

function fieldsListed(section: string): string[] {
  return [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, field = '']) => field).sort()
}

function fieldsOf(schema: { readonly properties: object }): string[] {
  return Object.keys(schema.properties)
    .filter((field) => field !== 'apiVersion' && field !== 'kind')
    .sort()
}

function anyTopic(kind: Topic['kind']): Topic {
  if (kind === 'controller' || kind === 'network') return { kind }
  if (kind === 'services') return { kind, shard: 0 }
  return kind === 'pod' ? { kind, node: 'NODE', uid: 'UID' } : { kind, node: 'NODE' }
}

function byTopic(a: { readonly topic: string }, b: { readonly topic: string }): number {
  return a.topic.localeCompare(b.topic)
}

test('the lists of CONTRIBUTING name few source files, and those of a kind are true', async (t) => {
  const sections = textOf('CONTRIBUTING.md').split(/^## /m)
  const filesOf = (section: string) =>
    [...section.matchAll(/^\d+\. `([^`]+\.ts)`(?: and `([^`]+\.ts)`)?/gm)].flatMap(([, ...paths]) =>
      paths.filter(Boolean),
    )
  const lists = sections.filter((section) => section.startsWith('Add a '))
  t.ok(lists.length >= 5)
  for (const section of lists) {
    const files = filesOf(section)
    t.ok(files.length > 0 && files.length <= 5, `${section.slice(0, 30)}: ${files.join(', ')}`)
    const missing = files.filter((path) => !/[A-Z]{3}/.test(path) && !existsSync(join(root, path)))
    t.same(missing, [])
  }
  const kind = filesOf(lists.find((section) => section.startsWith('Add a kind')) ?? '')
  const controller = filesOf(lists.find((section) => section.startsWith('Add a controller')) ?? '')
  const together = new Set([...kind, ...controller])
  t.ok(together.size <= 5, `a kind with a controller: ${[...together].join(', ')}`)
  for (const { kind: name } of builtInResources.all) {
    // `CSIDriver` is csi-driver.
    const file = name.replace(/(?<=[a-z])[A-Z]|(?<=[A-Z])[A-Z](?=[a-z])/g, (letter) => `-${letter}`).toLowerCase()
    const own = kind.map((path = '') => path.replace('KIND', file))
    t.same(
      own.filter((path) => !isThereOrInFolder(path)),
      [],
      name,
    )
  }
})

/** The file, or one of its name in a folder beside it. */
function isThereOrInFolder(path: string): boolean {
  const folder = join(root, dirname(path))
  const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [folder, ...folders.map(({ name }) => join(folder, name))].some((place) =>
    existsSync(join(place, basename(path))),
  )
}
