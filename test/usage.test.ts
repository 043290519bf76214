/** Who uses how much, on real parts: the kernel's files, Docker's own figures beside them, and kubectl top in front. */
import { test } from 'tap'
import { readMetrics } from '../daemon/testing/prometheus-parser.ts'
import { type TestDockerd, whyNoDockerd } from './support/dockerd.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const heldMi = 40
const Mi = 2 ** 20

type Stats = {
  readonly node: { readonly cpu: Stat; readonly memory: Stat; readonly fs: Stat; readonly rlimit: Stat }
  readonly pods: readonly PodStats[]
}
type PodStats = {
  readonly podRef: { readonly name: string }
  readonly containers: readonly {
    readonly name: string
    readonly memory: Stat
    readonly cpu: Stat
    readonly rootfs?: Stat
    readonly logs?: Stat
  }[]
  readonly network?: Stat
  readonly volume?: readonly ({ readonly name: string } & Stat)[]
}
type Stat = { readonly [name: string]: number }

/** Holds this much memory, writes this much to its own disk and its volume, and logs something. */
const script = `dd if=/dev/zero of=/dev/shm/held bs=1M count=${heldMi} 2>/dev/null
dd if=/dev/zero of=/scratch/file bs=1M count=3 2>/dev/null
dd if=/dev/zero of=/tmp/file bs=1M count=2 2>/dev/null
echo written
touch /tmp/done
while :; do sleep 1; done`

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'holder', namespace: 'default', labels: { app: 'holder' } },
  spec: {
    terminationGracePeriodSeconds: 0,
    volumes: [{ name: 'scratch', emptyDir: {} }],
    containers: [
      {
        name: 'memory',
        image,
        imagePullPolicy: 'IfNotPresent',
        command: ['sh', '-c', script],
        volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
        readinessProbe: { exec: { command: ['test', '-e', '/tmp/done'] }, periodSeconds: 1 },
        resources: { limits: { memory: '200Mi' } },
      },
      { name: 'idle', image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', 'while :; do sleep 1; done'] },
    ],
  },
}

test('what a pod uses is known on its machine and to kubectl top', { skip: whyNoDockerd() }, async (t) => {
  const { docker, controller, startReady } = await joinedFleet(t)
  const [agent] = await startReady()
  const { url } = await agent.logged('Local endpoint open')
  await controller.kubectlWith(JSON.stringify(pod), 'apply', '-f', '-')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/holder', '--timeout=60s')

  // Disks are walked once a minute: the first time may have been before everything was written.
  const readSummary = async () => {
    const found = JSON.parse(await textAt(`${url}/stats/summary`)) as Stats
    const holder = found.pods.find(({ podRef }) => podRef.name === 'holder')
    const memory = holder?.containers.find(({ name }) => name === 'memory')
    const [scratch] = holder?.volume?.filter(({ name }) => name === 'scratch') ?? []
    const isWritten = used(memory?.rootfs) >= 2 * Mi && used(scratch) >= 3 * Mi && used(memory?.logs) > 0
    const own = memory?.memory['workingSetBytes'] ?? 0
    if (!isWritten || own < heldMi * Mi || memory?.cpu['usageNanoCores'] === undefined) return undefined
    // Each probe is a process in the container for a moment, with some MiB of its own.
    const fromDocker = await dockerWorkingSet(docker, 'memory')
    if (Math.abs(own - fromDocker) < 4 * Mi) return found
    throw new Error(`Docker reports ${fromDocker}, the agent ${own}`)
  }
  const summary = await eventually('its disk, and as much memory as Docker reports', readSummary, { withinMs: 180_000 })
  const holder = summary.pods[0]
  const [memory] = holder?.containers.filter(({ name }) => name === 'memory') ?? []
  const own = memory?.memory['workingSetBytes'] ?? 0
  t.ok(own >= heldMi * Mi && own < (heldMi + 20) * Mi, `holds ${own}`)
  t.ok((memory?.memory['availableBytes'] ?? 0) + own === 200 * Mi, 'what its limit leaves')
  within(t, memory?.rootfs, 2 * Mi, 4 * Mi, 'its layer')
  within(t, memory?.logs, 1, Mi, 'its log')
  within(
    t,
    holder?.volume?.find(({ name }) => name === 'scratch'),
    3 * Mi,
    4 * Mi,
    'its scratch folder',
  )
  t.type(holder?.network?.['rxBytes'], 'number', 'its own network')
  t.equal(holder?.containers.length, 2)
  t.ok((summary.node.memory['workingSetBytes'] ?? 0) > own, 'the machine uses more than its pod')
  t.ok((summary.node.cpu['usageNanoCores'] ?? 0) > 0)
  t.ok((summary.node.fs['capacityBytes'] ?? 0) > 0)
  t.ok((summary.node.rlimit['curproc'] ?? 0) > 1)

  await eventually('kubectl top shows the node', async () =>
    /pi-1\s+\d+m\s+\d+%\s+\d+Mi\s+\d+%/.test(await controller.kubectl('top', 'nodes')),
  )
  await eventually('and the containers of the pod', async () => {
    const containers = await controller.kubectl('top', 'pods', '--containers', '-l', 'app=holder')
    const shown = Number(/holder\s+memory\s+\d+m\s+(\d+)Mi/.exec(containers)?.[1])
    if (shown >= heldMi && shown <= heldMi + 20) return true
    throw new Error(containers)
  })
  // A node that does not answer soon is left out.
  await eventually('it is shown alone', async () =>
    /holder\s+\d+m\s+\d+Mi/.test(await controller.kubectl('top', 'pod', 'holder')),
  )
  t.match((await controller.tryKubectl('top', 'pod', 'none')).stderr, /not found/)
  await eventually('all of it is reported through the API, too', async () => {
    const raw = await controller.kubectl('get', '--raw', '/api/v1/nodes/pi-1/proxy/stats/summary')
    return (JSON.parse(raw) as Stats).pods[0]?.containers[0]?.rootfs !== undefined
  })
  const cadvisor = readMetrics(await textAt(`${url}/metrics/cadvisor`))
  const seen = cadvisor
    .get('container_memory_working_set_bytes')
    ?.samples.find(({ labels }) => labels['pod'] === 'holder' && labels['container'] === 'memory')
  t.ok((seen?.value ?? 0) >= heldMi * Mi, 'Prometheus gets the same')
  t.ok(readMetrics(await textAt(`${url}/metrics/resource`)).has('pod_cpu_usage_seconds_total'))
  const machine = readMetrics(await textAt(`${url}/metrics`))
  t.equal(machine.get('kubelet_running_pods')?.samples[0]?.value, 1)
  t.ok((machine.get('node_memory_MemAvailable_bytes')?.samples[0]?.value ?? 0) > Mi)
  const fleet = readMetrics(await controller.kubectl('get', '--raw', '/metrics/fleet'))
  t.match(fleet.get('kube_pod_info')?.samples, [{ labels: { pod: 'holder', node: 'pi-1' }, value: 1 }])
  await eventually('it is in the list of the API', async () =>
    /NAME\s+CPU\s+MEMORY\s+WINDOW\s+holder/.test(await controller.kubectl('get', 'pods.metrics.k8s.io')),
  )
})

function used(stat: Stat | undefined): number {
  return stat?.['usedBytes'] ?? -1
}

function within(
  t: { ok(value: boolean, message: string): unknown },
  stat: Stat | undefined,
  least: number,
  most: number,
  what: string,
) {
  const bytes = used(stat)
  t.ok(bytes >= least && bytes <= most, `${what}: ${bytes}`)
}

/** As `docker stats` computes it. */
async function dockerWorkingSet({ docker }: TestDockerd, container: string): Promise<number> {
  const [row] = await docker.listContainers({ filters: { label: [`io.kubernetes.container.name=${container}`] } })
  if (row === undefined) throw new Error(`No container ${container}`)
  const { memory_stats } = await docker.getContainer(row.Id).stats({ stream: false })
  const stats = memory_stats.stats as { readonly [name: string]: number }
  return memory_stats.usage - (stats['total_inactive_file'] ?? stats['inactive_file'] ?? 0)
}

async function textAt(url: string): Promise<string> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  return response.text()
}
