/** The commands of each supported version of kubectl, against a fleet on Docker. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'
import { type KubectlVersion, kubectlVersions, whyNoKubectlVersions } from './support/kubectl-versions.ts'
import { command } from './support/machine-commands.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const supported = ['1.29', '1.30', '1.31', '1.32', '1.33']

test('kubectl 1.29 to 1.33', { skip: whyNoKubectlVersions() }, async (t) => {
  const versions = await kubectlVersions()
  t.same(
    versions.map(({ minor }) => minor),
    supported,
  )
  const fleet = await joinedFleet(t)
  await fleet.startReady()
  const { kubeconfig } = fleet.controller
  for (const version of versions) {
    await t.test(`kubectl ${version.minor}`, (t) => commandsOf(t, version, { kubeconfig, folder: fleet.folder }))
  }
})

type Place = { readonly kubeconfig: string; readonly folder: string }
type Kubectl = {
  /** What it printed. Throws when it fails. */
  run(...args: readonly string[]): Promise<string>
  /** The same, with something on its standard input. */
  runWith(input: string, ...args: readonly string[]): Promise<string>
  start(...args: readonly string[]): ChildProcess
}

/** With a cache and a namespace of its own. */
async function commandsOf(t: Test, { minor, program }: KubectlVersion, { kubeconfig, folder }: Place): Promise<void> {
  const namespace = `v${minor.replace('.', '-')}`
  const files = join(folder, namespace)
  const common = ['--kubeconfig', kubeconfig, '--cache-dir', `${files}-cache`, '--namespace', namespace]
  const runWith: Kubectl['runWith'] = async (input, ...args) => {
    const { code, stdout, stderr } = await command(program, [...common, ...args], { withinMs: 120_000, input })
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`)
    return stdout
  }
  const kubectl: Kubectl = {
    run: (...args) => runWith('', ...args),
    runWith,
    start: (...args) => spawn(program, [...common, ...args], { stdio: ['pipe', 'pipe', 'inherit'] }),
  }
  await kubectl.run('create', 'namespace', namespace)
  await t.test('the client and the server', async (t) => {
    t.match(
      await kubectl.run('version'),
      new RegExp(`Client Version: v${minor.replace('.', '\\.')}\\..*Server Version: v1\\.32`, 's'),
    )
    t.match(await kubectl.run('api-resources'), /^deployments +deploy +apps\/v1 +true +Deployment$/m)
    t.match(await kubectl.run('explain', 'pod.spec.containers'), /FIELD: +containers/)
    t.match(await kubectl.run('auth', 'whoami'), /Username/)
    t.equal((await kubectl.run('auth', 'can-i', 'create', 'pods')).trim(), 'yes')
  })
  await t.test('workloads', (t) => workloads(t, kubectl, namespace))
  await t.test('streams', (t) => streams(t, kubectl, files))
  await t.test('nodes', async (t) => {
    t.match(await kubectl.run('cordon', 'pi-1'), /cordoned/)
    t.match(await kubectl.run('get', 'nodes'), /pi-1 +Ready,SchedulingDisabled/)
    t.match(await kubectl.run('uncordon', 'pi-1'), /uncordoned/)
    t.match(await kubectl.run('taint', 'node', 'pi-1', `${namespace}=x:PreferNoSchedule`), /tainted/)
    t.match(await kubectl.run('taint', 'node', 'pi-1', `${namespace}-`), /untainted/)
    t.match(await kubectl.run('describe', 'node', 'pi-1'), /Conditions:.*Allocated resources:/s)
  })
  await t.test('the end', async (t) => {
    t.match(await kubectl.run('delete', 'deployment,configmap,pod', '--all', '--now'), /"web" deleted/)
    t.match(await kubectl.run('delete', 'namespace', namespace), /deleted/)
  })
}

const container = { name: 'main', image, command: ['sh', '-c', 'echo ready; cd /tmp; exec httpd -f -p 8080'] }
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { terminationGracePeriodSeconds: 1, containers: [container] },
    },
  },
}

async function workloads(t: Test, { run, runWith, start }: Kubectl, namespace: string): Promise<void> {
  const manifest = JSON.stringify(deployment)
  t.match(await runWith(manifest, 'apply', '-f', '-'), /deployment\.apps\/web created/)
  t.match(await run('rollout', 'status', 'deployment/web', '--timeout=80s'), /successfully rolled out/)
  t.match(await runWith(manifest, 'apply', '-f', '-'), /unchanged/)
  t.equal(await runWith(manifest, 'diff', '-f', '-'), '')
  t.match(await runWith(manifest, 'apply', '--server-side', '--force-conflicts', '-f', '-'), /serverside-applied/)
  t.match(await run('get', 'pods', '-o', 'wide'), /^web-\S+ +1\/1 +Running +0 +\S+ +[\d.]+ +pi-1 /m)
  t.equal(await run('get', 'deployment', 'web', '-o', 'jsonpath={.spec.replicas}'), '1')
  t.match(await run('get', 'deployment', 'web', '-o', 'yaml'), /^kind: Deployment$/m)
  t.match(await run('describe', 'deployment', 'web'), /StrategyType: +RollingUpdate.*Events:/s)
  t.match(await run('describe', 'pods', '-l', 'app=web'), /Node: +pi-1/)
  t.match(await run('scale', 'deployment', 'web', '--replicas=2'), /scaled/)
  t.match(await run('wait', '--for=condition=Available', 'deployment/web', '--timeout=80s'), /condition met/)
  t.match(await run('set', 'env', 'deployment/web', 'NEW=1'), /updated/)
  const revision = 'jsonpath={.metadata.annotations.deployment\\.kubernetes\\.io/revision}'
  await eventually('the change has a revision', async () => (await run('get', 'deploy', 'web', '-o', revision)) === '2')
  t.match(await run('rollout', 'undo', 'deployment/web'), /rolled back/)
  t.match(await run('rollout', 'history', 'deployment/web'), /REVISION/)
  t.match(await run('rollout', 'status', 'deployment/web', '--timeout=80s'), /successfully rolled out/)
  t.match(await run('label', 'deployment', 'web', 'tier=front'), /labeled/)
  t.match(await run('annotate', 'deployment', 'web', 'note=x'), /annotated/)
  t.match(await run('create', 'configmap', 'settings', '--from-literal=a=b'), /created/)
  t.match(await run('patch', 'configmap', 'settings', '-p', '{"data":{"a":"c"}}'), /patched/)
  t.match(await run('expose', 'deployment', 'web', '--port=80', '--target-port=8080'), /exposed/)
  t.match(await run('create', 'token', 'default'), /^[\w-]+\.[\w-]+\.[\w-]+\s*$/)
  t.match(await run('events', '--for', 'deployment/web'), /ScalingReplicaSet/)
  const watching = start('get', 'configmap', 'settings', '--watch', '-o', 'jsonpath={.data.a}{"\\n"}')
  if (watching.stdout === null) throw new Error('No output')
  const lines = createInterface({ input: watching.stdout })[Symbol.asyncIterator]()
  t.equal((await lines.next()).value, 'c', `a watch in ${namespace} begins with the object`)
  await run('patch', 'configmap', 'settings', '-p', '{"data":{"a":"d"}}')
  t.equal((await lines.next()).value, 'd', 'and goes on with its changes')
  await ended(watching)
}

async function streams(t: Test, { run, runWith, start }: Kubectl, files: string): Promise<void> {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one' } }
  const spec = { terminationGracePeriodSeconds: 1, containers: [container] }
  await runWith(JSON.stringify({ ...pod, spec }), 'apply', '-f', '-')
  await run('wait', '--for=condition=Ready', 'pod/one', '--timeout=80s')
  await eventually('its log is there', async () => (await run('logs', 'one')) === 'ready\n')
  t.match(await run('logs', 'deployment/web', '--tail=1', '--timestamps'), /Z ready\n$/)
  t.equal(await run('exec', 'one', '--', 'echo', 'here'), 'here\n')
  t.equal(await runWith('typed', 'exec', '-i', 'one', '--', 'cat'), 'typed', 'standard input ends with its file')
  await t.rejects(run('exec', 'one', '--', 'sh', '-c', 'exit 3'), /ended with 3: .*exit code 3/)
  const bytes = randomBytes(300_000)
  await writeFile(files, bytes)
  await run('cp', files, 'one:/tmp/page')
  await run('cp', 'one:/tmp/page', `${files}.back`)
  t.ok((await readFile(`${files}.back`)).equals(bytes), 'a copy there and back is the same')
  const forwarding = start('port-forward', 'pod/one', ':8080')
  if (forwarding.stdout === null) throw new Error('No output')
  const [line] = (await once(forwarding.stdout, 'data')) as [Buffer]
  const page = await fetch(`http://127.0.0.1:${/:(\d+) ->/.exec(line.toString())?.[1]}/page`)
  t.ok(Buffer.from(await page.arrayBuffer()).equals(bytes), 'and by a forwarded port')
  await ended(forwarding)
}

async function ended(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}
