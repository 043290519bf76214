import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The user `daemon` of Debian. */
const stranger = 1
const skip = skipWithout('root', isRoot())

test('quickstart.sh refuses a data folder that another user could redirect', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bq-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const target = join(folder, 'target')
  await writeFile(target, 'as it was')

  const cases: readonly [name: string, prepare: (data: string) => Promise<string | undefined>, message: RegExp][] = [
    ['a folder of another user', (data) => owned(data, stranger), /belongs to daemon, and this is root/],
    [
      'a new folder below another user’s',
      async (data) => join((await owned(data, stranger)) ?? data, 'new'),
      /which holds the data folder, belongs to daemon/,
    ],
    ['a folder that all may write', (data) => open(data), /Other users may change .*chmod go-w/s],
    [
      'a new folder below one that all may write',
      async (data) => join((await open(data)) ?? data, 'new'),
      /Other users may change .*, which holds the data folder/,
    ],
    ...['ports', '.lock', 'logs', 'controller', 'agent.pid', 'dockerd.json'].map((name): (typeof cases)[number] => [
      `a planted link ${name}`,
      (data) => linked(data, name, target),
      new RegExp(`${name} is a symbolic link`),
    ]),
    [
      'a planted link to a log',
      async (data) => {
        await mkdir(join(data, 'logs'), { recursive: true })
        return linked(data, 'logs/install.log', target)
      },
      /install\.log is a symbolic link/,
    ],
    [
      'a state folder of the installed packages',
      async (data) => {
        await mkdir(data)
        return void (await owned(join(data, 'controller'), stranger))
      },
      /controller belongs to daemon/,
    ],
  ]
  for (const [index, [name, prepare, message]] of cases.entries()) {
    await t.test(name, async (t) => {
      const made = join(folder, `case-${index}`)
      const data = (await prepare(made)) ?? made
      const before = await tree(made)
      for (const option of ['--yes', '--stop']) {
        if (option === '--stop' && data !== made) continue // There is nothing to stop.
        const { code, output } = await quickstart(option, '--data', data)
        t.equal(code, 1)
        t.match(output, message)
        t.match(output, /Remedy: /)
      }
      t.same(await tree(made), before, 'nothing was written')
      t.equal(await readFile(target, 'utf8'), 'as it was')
    })
  }
})

test('quickstart.sh --stop stops the pods in a Docker that stays, and removes their network', {
  skip: skip || whyNoDockerd(),
}, async (t) => {
  const { docker, socket, importImage } = await startDockerd(t)
  await importImage('pod:1', ['sleep', '1000'])
  const folder = await mkdtemp(join(tmpdir(), 'bq-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const identity = join(folder, 'identity.json')
  await writeFile(identity, JSON.stringify({ nodeName: 'ours' }))
  const networkOf = (node: string) =>
    docker.createNetwork({ Name: `bramble_${node}`, Driver: 'bridge', Labels: { 'bramble.dev/node': node } })
  await networkOf('ours')
  await networkOf('another')
  const container = await docker.createContainer({
    Image: 'pod:1',
    Labels: { 'bramble.dev/node': 'ours' },
    HostConfig: { NetworkMode: 'bramble_ours' },
  })
  await container.start()

  const { code, output } = await runProgram(process.execPath, [
    join(root, 'dist/scripts/quickstart-probe.js'),
    ...['stop-pods', socket, identity],
  ])
  t.equal(code, 0) || t.comment(output)
  t.match(output, 'Containers stopped: 1, networks removed: 1')
  t.equal((await container.inspect()).State.Running, false, 'the container is kept')
  const names = (await docker.listNetworks()).map(({ Name }) => Name)
  t.notOk(names.includes('bramble_ours'))
  t.ok(names.includes('bramble_another'), 'another node’s network stays')
})

async function owned(path: string, user: number): Promise<string> {
  await mkdir(path)
  await chown(path, user, user)
  return path
}

async function open(path: string): Promise<string> {
  await mkdir(path)
  await chmod(path, 0o777)
  return path
}

async function linked(data: string, name: string, target: string): Promise<undefined> {
  await mkdir(data, { recursive: true })
  await symlink(target, join(data, name))
  return undefined
}

async function tree(folder: string): Promise<readonly string[]> {
  return (await readdir(folder, { recursive: true })).sort()
}

type Ended = { readonly code: number; readonly output: string }

const quickstart = (...args: string[]) => runProgram(join(root, 'scripts/quickstart.sh'), args)

function runProgram(command: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(command, [...args], { timeout: 120_000 }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, output: stdout + stderr }),
    )
  })
}
