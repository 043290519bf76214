/** A machine joins with one printed line; every failure is reported and leaves nothing behind. */
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { startDockerd } from './support/dockerd.ts'
import { agentCommand, startAgent, startController, temporaryFolder } from './support/fleet.ts'
import { eventually } from './support/wait.ts'

test('a machine joins with the printed line', async (t) => {
  const folder = await temporaryFolder(t)
  const docker = await startDockerd(t)
  const controller = await startController(t, { dataDir: join(folder, 'controller') })
  const dataDir = join(folder, 'agent')
  const fleet = t

  const line = await controller.joinLine('--ttl', '24h')
  t.same(line.slice(0, 2), ['join', controller.apiUrl], 'the line names the command and the controller')
  const joined = await agentCommand(...line, '--no-run', '--node-name', 'pi-1', '--data-dir', dataDir)
  t.equal(joined.code, 0, joined.stderr)
  t.equal((await stat(join(dataDir, 'identity.json'))).mode & 0o777, 0o600, 'the key is for its owner alone')

  const agent = await startAgent(t, { dataDir, dockerSocket: docker.socket })
  await agent.logged('Node status posted')
  await controller.nodesReady('pi-1')

  await t.test('kubectl shows the machine as it is', async (t) => {
    const node = JSON.parse(await controller.kubectl('get', 'node', 'pi-1', '-o', 'json'))
    t.match(node.metadata.labels, { 'kubernetes.io/hostname': String, 'kubernetes.io/os': 'linux' })
    t.match(node.status.nodeInfo, { containerRuntimeVersion: /^docker:\/\//, operatingSystem: 'linux' })
    t.match(node.status.capacity, { cpu: /^\d+$/, memory: /Ki$/, pods: '110', 'ephemeral-storage': String })
    const conditions: readonly { readonly type: string; readonly status: string }[] = node.status.conditions
    const kubelets = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready']
    t.same(
      conditions.filter(({ type }) => kubelets.includes(type)).map(({ type, status }) => [type, status]),
      kubelets.map((type) => [type, type === 'Ready' ? 'True' : 'False']),
    )
    t.match(await controller.kubectl('describe', 'node', 'pi-1'), /KubeletReady/)
    await eventually('it renews its lease, beside its status', async () =>
      /pi-1\s+pi-1/.test(await controller.kubectl('get', 'leases', '-n', 'kube-node-lease')),
    )
    t.match(await controller.kubectl('get', 'csr'), /Approved,Issued/)
  })

  await t.test('a second agent on the same machine joins under another name', async (t) => {
    const second = join(folder, 'second')
    const joinedToo = await agentCommand(...line, '--no-run', '--node-name', 'pi-2', '--data-dir', second)
    t.equal(joinedToo.code, 0, joinedToo.stderr)
    const other = await startAgent(t, { dataDir: second, dockerSocket: docker.socket })
    await other.logged('Node status posted')
    await controller.nodesReady('pi-2')
    t.match(await controller.kubectl('get', 'nodes', '-o', 'name'), 'node/pi-1\nnode/pi-2')
  })

  await t.test('joining again just works, and the fresh certificate serves', async (t) => {
    const again = await agentCommand(...line, '--no-run', '--node-name', 'pi-1', '--data-dir', dataDir)
    t.equal(again.code, 0, again.stderr)
    await agent.stop()
    const restarted = await startAgent(fleet, { dataDir, dockerSocket: docker.socket })
    await restarted.logged('Node status posted')
  })

  await t.test('a second agent in the same folder is refused while the first runs', async (t) => {
    const third = await startAgent(t, { dataDir, dockerSocket: docker.socket })
    t.not(await third.ended, 0, 'it ended with an error')
    t.match(third.lines.at(-1)?.message ?? '', /./, 'and logged why')
  })

  await t.test(
    'a name in use by another live machine is refused; the operator alone reads both identities',
    async (t) => {
      const root = await machineCalled(t, 'abc0000000000001')
      const dir = join(folder, 'other-machine')
      const refused = await agentCommand(...line, '--no-run', '--node-name', 'pi-1', '--data-dir', dir, '--root', root)
      t.not(refused.code, 0)
      t.match(refused.stderr, /NodeNameInUse.*node name pi-1 is in use by another machine/)
      await nothingLeft(t, dir)
      const events = await controller.kubectl('get', 'events', '--field-selector', 'reason=NodeNameInUse', '-o', 'json')
      t.match(events, /which a node has \(.*without proof: board serial abc0000000000001/)
    },
  )
})

test('every failed join reports why', async (t) => {
  const folder = await temporaryFolder(t)
  const controller = await startController(t, { dataDir: join(folder, 'controller') })
  const [, url = '', ...options] = await controller.joinLine()
  const [, token = '', , hash = ''] = options
  const attempt = async (name: string, args: readonly string[], nodeName = 'pi-9') => {
    const dir = join(folder, name)
    const { code, stderr } = await agentCommand(
      'join',
      ...args,
      ...['--no-run', '--node-name', nodeName, '--data-dir', dir],
    )
    t.not(code, 0, `${name}: it fails`)
    await nothingLeft(t, dir)
    return stderr
  }

  // First: what has expired is removed when the controller has run for a minute.
  const short = await controller.joinLine('--ttl', '1s')
  const madeMs = Date.now()
  await eventually('the token expires', () => Date.now() > madeMs + 1_000)
  const expired = await attempt('expired token', [url, '--token', short[3] ?? '', '--ca-hash', hash])
  t.match(expired, /expired.*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/, 'it shows when')

  const wrong = `sha256:${'0'.repeat(64)}`
  const hashError = await attempt('wrong hash', [url, '--token', token, '--ca-hash', wrong])
  t.match(hashError, wrong, 'it shows what was expected')
  t.match(hashError, hash, 'and what it found')

  t.match(await attempt('unknown token', [url, '--token', 'aaaaaa.0123456789abcdef', '--ca-hash', hash]), /aaaaaa/)
  t.match(await attempt('malformed token', [url, '--token', 'nonsense', '--ca-hash', hash]), /token/)

  // No process listens there: the system assigns no port that low.
  const unreachable = await attempt('unreachable', ['https://127.0.0.1:1', '--token', token, '--ca-hash', hash])
  t.match(unreachable, '127.0.0.1:1', 'it names the address')
  t.match(await attempt('bad name', [url, '--token', token, '--ca-hash', hash], 'no_good!'), /node/i)
  t.notMatch(await controller.kubectl('get', 'nodes', '-o', 'name'), 'pi-9', 'no node has come to be')
})

/** A root folder whose board has this serial number. */
async function machineCalled(t: Parameters<typeof temporaryFolder>[0], serial: string): Promise<string> {
  const root = await temporaryFolder(t)
  await mkdir(join(root, 'proc/device-tree'), { recursive: true })
  await writeFile(join(root, 'proc/device-tree/serial-number'), `${serial}\0`)
  await mkdir(join(root, 'etc'), { recursive: true })
  await writeFile(join(root, 'etc/machine-id'), `${'f'.repeat(32)}\n`)
  return root
}

async function nothingLeft(t: Test, dir: string): Promise<void> {
  const left = await readdir(dir).catch(() => [])
  t.same(left, [], 'nothing is left behind')
}
