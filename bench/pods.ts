/** Measures the cost of a pod on one machine. `--help` prints the usage. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { dockerRuntime } from '../agent/adapters/docker/docker-runtime.ts'
import { type PodWorld, startPods } from '../agent/testing/pod-world.ts'
import type { Pod } from '../api/pod.ts'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { apiClient } from '../daemon/api-client.ts'
import { systemClock } from '../daemon/clock.ts'
import { openLog } from '../daemon/log.ts'
import { type DockerDoor, dockerDoor } from '../test/support/docker-door.ts'
import { startDockerd, type TestDockerd } from '../test/support/dockerd.ts'
import { joinFleet, startAgent, startController } from '../test/support/fleet.ts'
import { testVolumes } from '../test/support/volumes.ts'
import { median } from './figures/median.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/pods.js',
  text: `Measures on one machine, with a dockerd of its own, how long a pod takes to start beside a plain container of the same image, and what
an agent uses while its pods only run. Prints tables. Needs root, docker.io, busybox-static and bundles (npm run build).`,
  options: {
    starts: { value: 'N', help: 'starts, one after the other; 0: none', range: [0, 10_000], default: '30' },
    seconds: { value: 'S', help: 'how long running pods are measured', range: [1, 100_000], default: '60' },
    pods: {
      value: 'N',
      help: 'number of running pods',
      range: [0, 110],
      repeated: true,
      default: ['0', '10', '50'],
    },
    calls: { help: 'print the calls to Docker for a start, too' },
  },
})
/** Each adds pods to those of the one before. */
const sizes = values.pods.toSorted((a, b) => a - b)
const image = 'test/busybox:1'
const together = 50
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

try {
  const folder = await mkdtemp(join(tmpdir(), 'bp-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const dockerd = await startDockerd({ teardown: (end) => ending.teardown(end) })
  await dockerd.importImage(image, ['sleep', '100000'])
  const { Driver, ServerVersion } = await dockerd.docker.info()
  const [load = 0] = loadavg()
  console.log(`Docker ${ServerVersion} on ${Driver}, ${cpus().length} cores, load ${load.toFixed(1)}\n`)
  if (values.starts > 0) console.log(await starting(dockerd, values.starts))
  console.log(await idling(dockerd, folder, values.seconds))
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end()
}

/** From receiving the desired state to reporting that it runs; from asking for a container to its having started. */
async function starting(dockerd: TestDockerd, times: number): Promise<string> {
  const { store: volumes } = await testVolumes({ teardown: (end) => ending.teardown(end) })
  const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
  const nodeOn = (socketPath: string) =>
    startPods({ runtime: dockerRuntime({ socketPath, nodeName: 'pi-01' }), clock: systemClock, log, volumes })
  const door = await dockerDoor({ teardown: (end) => ending.teardown(end) }, dockerd.socket)
  const counted = nodeOn(door.socket)
  const pod = (name: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: {
      containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent' }],
      terminationGracePeriodSeconds: 0,
    },
  })
  const comesAndGoes = async (node: PodWorld, name: string) => {
    const before = door.calls.length
    node.want(pod(name))
    await until(() => node.status(name)?.phase === 'Running')
    const calls = door.calls.slice(before)
    node.want()
    await until(() => node.gone.includes(`uid-${name}`))
    return calls
  }
  await comesAndGoes(counted, 'first')
  const calls = await comesAndGoes(counted, 'second')
  await counted.stop()

  const node = nodeOn(dockerd.socket)
  const runs = (name: string) => node.status(name)?.phase === 'Running'
  const gone = (names: readonly string[]) => until(() => names.every((name) => node.gone.includes(`uid-${name}`)))
  await comesAndGoes(node, 'warm')
  const [pods, plain]: [number[], number[]] = [[], []]
  for (let i = 0; i < times; i++) {
    pods.push(
      await timed(async () => {
        node.want(pod(`pod-${i}`))
        await until(() => runs(`pod-${i}`))
      }),
    )
    node.want()
    await gone([`pod-${i}`])
    const [ms, remove] = await plainRun(dockerd)
    plain.push(ms)
    await remove()
  }
  const names = Array.from({ length: together }, (_, i) => `many-${i}`)
  const manyMs = await timed(async () => {
    node.want(...names.map(pod))
    await until(() => names.every(runs))
  })
  node.want()
  await gone(names)
  await node.stop()
  const removes: (() => Promise<void>)[] = []
  const manyPlainMs = await timed(async () => {
    let left = together
    const four = Array.from({ length: 4 }, async () => {
      while (left-- > 0) removes.push((await plainRun(dockerd))[1])
    })
    await Promise.all(four)
  })
  for (const remove of removes) await remove()
  if (values.calls) console.log(calls.join('\n'))
  return table(
    ['', 'pod', 'plain container', 'ratio'],
    [
      [`start, median of ${times}`, ...compared(median(pods), median(plain))],
      [`start, the fastest`, ...compared(Math.min(...pods), Math.min(...plain))],
      [`${together} together`, ...compared(manyMs, manyPlainMs)],
      ['calls to Docker for a start', String(calls.length), '2', (calls.length / 2).toFixed(1)],
    ],
  )
}

/** What `docker run -d` asks the engine for. */
async function plainRun({ docker }: TestDockerd): Promise<[number, () => Promise<void>]> {
  let id = ''
  const ms = await timed(async () => {
    const made = await docker.createContainer({ Image: image })
    id = made.id
    await made.start()
  })
  return [ms, () => docker.getContainer(id).remove({ force: true, v: true })]
}

/** The agent as a program, with a controller, and pods that are asked every ten seconds whether they live and are ready. */
async function idling(dockerd: TestDockerd, folder: string, seconds: number) {
  const door = await dockerDoor({ teardown: (end) => ending.teardown(end) }, dockerd.socket)
  const controller = await startController(ending, { dataDir: join(folder, 'controller') })
  const dataDir = join(folder, 'agent')
  await joinFleet(controller, 'pi-01', dataDir)
  const agent = await startAgent(ending, { dataDir, dockerSocket: door.socket })
  await agent.logged('Node status posted')
  const api = apiClient({ ...(await readKubeconfig(controller.kubeconfig)), deadlineMs: 60_000 })
  const path = '/api/v1/namespaces/default/pods'
  const probe = { httpGet: { path: '/busybox', port: 8080 }, periodSeconds: 10 }
  const container = {
    ...{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['httpd', '-f', '-p', '8080', '-h', '/bin'] },
    ...{ readinessProbe: probe, livenessProbe: probe },
  }
  const rows: string[][] = []
  let here = 0
  for (const size of sizes) {
    for (; here < size; here++) {
      const spec = { nodeName: 'pi-01', terminationGracePeriodSeconds: 0, containers: [container] }
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: `idle-${here}` }, spec }
      const { status, body } = await api.post(path, pod)
      if (status >= 300) throw new Error(`A pod was refused: ${JSON.stringify(body)}`)
    }
    await until(async () => {
      const { items } = (await api.get(path)).body as { readonly items: readonly Pod[] }
      const ready = items.filter(({ status }) =>
        status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
      )
      return ready.length === size
    }, 500)
    await delay(20_000) // what a start leaves to do is over
    rows.push([String(size), ...(await window(agent.pid, door, seconds))])
  }
  return table(['pods', 'processor, of one core', 'resident', 'not shared', 'calls to Docker a minute'], rows)
}

async function window(pid: number, door: DockerDoor, seconds: number): Promise<string[]> {
  const [calls, ticks] = [door.calls.length, await ticksOf(pid)]
  const ms = await timed(() => delay(seconds * 1000))
  const used = (await ticksOf(pid)) - ticks
  const made = door.calls.length - calls
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const megabytes = (name: string) =>
    `${((Number(new RegExp(`${name}:\\s*(\\d+)`).exec(status)?.[1]) * 1024) / 1e6).toFixed(1)} MB`
  return [
    `${((used * 10 * 100) / ms).toFixed(2)} %`,
    megabytes('VmRSS'),
    megabytes('RssAnon'),
    ((made * 60_000) / ms).toFixed(1),
  ]
}

/** Hundredths of a second of processor. */
async function ticksOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}

async function until(holds: () => boolean | Promise<boolean>, everyMs = 1): Promise<void> {
  const lastMs = performance.now() + 300_000
  while (!(await holds())) {
    if (performance.now() > lastMs) throw new Error('It does not come')
    await delay(everyMs)
  }
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now()
  await act()
  return performance.now() - beganMs
}

function compared(ms: number, plainMs: number): string[] {
  return [`${Math.round(ms)} ms`, `${Math.round(plainMs)} ms`, (ms / plainMs).toFixed(2)]
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `${lines.join('\n')}\n`
}
