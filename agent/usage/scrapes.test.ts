import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { readMetrics } from '../../daemon/testing/prometheus-parser.ts'
import { filesystemUsage } from '../adapters/disk/filesystem-usage.ts'
import { machineMetrics } from '../adapters/kernel/machine-metrics.ts'
import { aDiskReading, aNodeReading, aPodReading } from '../testing/fake-usage.ts'
import { savedTree } from '../testing/saved-trees.ts'
import { agentCounters } from './agent-counters.ts'
import { scrapes } from './scrapes.ts'
import type { PodUsage } from './usage.ts'

const Mi = 2 ** 20

function aScraper({
  clock = fakeClock(),
  podDiskUsage = async () => [aDiskReading('u1')],
}: {
  clock?: ReturnType<typeof fakeClock>
  podDiskUsage?: PodUsage['podDiskUsage']
} = {}) {
  return scrapes(
    {
      pods: { podReadings: async () => [aPodReading('u1', 2.5e9), aPodReading('u2', 1e9)], podDiskUsage },
      node: { nodeReading: async () => aNodeReading },
      containers: async () => [],
      machine: () =>
        machineMetrics({ root: savedTree('usage-metrics'), filesystemAt: filesystemUsage() }, clock.wallMs()),
      probes: () => ({ counts: [], buckets: [] }),
      counts: agentCounters().text,
      certificateTtlSeconds: () => 86_400,
      volumes: () => ({ pools: [], volumes: [], trash: [] }),
      clock,
    },
    { nodeName: 'pi-01', cpus: 4, memoryBytes: 1024 * Mi },
  )
}

test('cAdvisor’s names and labels are kept', async (t) => {
  const families = readMetrics(await aScraper().cadvisor())
  const cpu = families.get('container_cpu_usage_seconds_total')
  t.equal(cpu?.type, 'counter')
  t.same(cpu?.samples[1], {
    labels: {
      id: '/container-u1',
      image: 'web:1',
      name: 'container-u1',
      namespace: 'default',
      pod: 'pod-u1',
      container: 'server',
      cpu: 'total',
    },
    value: 2.5,
  })
  t.match(cpu?.samples[0], { labels: { id: '/', pod: '' }, value: 1000 })
  t.match(families.get('container_memory_working_set_bytes')?.samples[1], { value: 70 * Mi })
  t.match(families.get('container_spec_memory_limit_bytes')?.samples[0], { value: 128 * Mi })
  t.match(families.get('container_network_receive_bytes_total')?.samples[0], {
    labels: { namespace: 'default', pod: 'pod-u1', interface: 'eth0' },
    value: 1000,
  })
  t.equal(families.get('machine_cpu_cores')?.samples[0]?.value, 4)
})

test('I/O, CPU limits and the size of what containers wrote are there', async (t) => {
  const families = readMetrics(await aScraper().cadvisor())
  const ofServer = (name: string) => families.get(name)?.samples.find(({ labels }) => labels['pod'] === 'pod-u1')
  t.match(ofServer('container_fs_writes_bytes_total'), {
    labels: { container: 'server', device: '/dev/mmcblk0' },
    value: 8192,
  })
  t.match(ofServer('container_fs_reads_total'), { value: 1000 })
  t.match(ofServer('container_spec_cpu_quota'), { value: 50_000 })
  t.match(ofServer('container_spec_cpu_period'), { value: 100_000 })
  t.match(ofServer('container_spec_cpu_shares'), { value: 512 })
  t.match(ofServer('container_fs_usage_bytes'), { value: 1200 })
  t.match(ofServer('container_fs_limit_bytes'), { value: 10_000 })
})

test('a scrape does not wait for disks that are not counted', async (t) => {
  const clock = fakeClock()
  const answer = aScraper({ clock, podDiskUsage: () => new Promise(() => undefined) }).cadvisor()
  await clock.advance(2_000)
  const families = readMetrics(await answer)
  t.notOk(families.has('container_fs_usage_bytes'))
  t.ok(families.has('container_fs_reads_total'))
})

test('what metrics-server reads is there', async (t) => {
  const families = readMetrics(await aScraper().resource())
  t.same(families.get('pod_memory_working_set_bytes')?.samples[0], {
    labels: { namespace: 'default', pod: 'pod-u1' },
    value: 71 * Mi,
  })
  t.same(families.get('container_cpu_usage_seconds_total')?.samples[0], {
    labels: { container: 'server', namespace: 'default', pod: 'pod-u1' },
    value: 2.5,
  })
  t.equal(families.get('node_cpu_usage_seconds_total')?.samples[0]?.value, 1000)
})

test('a machine has node_exporter’s names', async (t) => {
  const families = readMetrics(await aScraper().metrics())
  const sampleOf = (name: string, at = 0) => families.get(name)?.samples[at]
  t.same(sampleOf('node_hwmon_temp_celsius'), { labels: { chip: 'hwmon0', sensor: 'temp1' }, value: 58.4 })
  t.same(sampleOf('node_hwmon_in_lcrit_alarm'), { labels: { chip: 'hwmon1', sensor: 'in0' }, value: 1 })
  t.same(sampleOf('node_hwmon_chip_names', 1), { labels: { chip: 'hwmon1', chip_name: 'rpi_volt' }, value: 1 })
  t.same(sampleOf('node_thermal_zone_temp'), { labels: { type: 'cpu-thermal', zone: '0' }, value: 58.4 })
  t.same(sampleOf('node_pressure_memory_waiting_seconds_total'), { labels: {}, value: 12.5 })
  t.same(sampleOf('node_pressure_memory_stalled_seconds_total'), { labels: {}, value: 3.25 })
  t.notOk(families.has('node_pressure_cpu_stalled_seconds_total'))
  t.same(sampleOf('node_load1'), { labels: {}, value: 0.52 })
  t.same(sampleOf('node_memory_MemTotal_bytes'), { labels: {}, value: 3884392 * 1024 })
  t.same(sampleOf('node_memory_Active_anon_bytes'), { labels: {}, value: 1024 })
  t.same(sampleOf('node_cpu_seconds_total', 1), { labels: { cpu: '0', mode: 'nice' }, value: 0.5 })
  t.same(sampleOf('node_boot_time_seconds'), { labels: {}, value: 1767225600 })
  t.same(
    families.get('node_network_receive_bytes_total')?.samples.map(({ labels }) => labels['device']),
    ['eth0', 'wlan0', 'usb0'],
    'not the ends of pods’ networks',
  )
  t.same(sampleOf('kubelet_running_pods'), { labels: {}, value: 2 })
  t.same(sampleOf('kubelet_certificate_manager_client_ttl_seconds'), { labels: {}, value: 86_400 })
  t.same(sampleOf('kubelet_node_name'), { labels: { node: 'pi-01' }, value: 1 })
})

test('the machine and the agent are read apart, and no metric is in both parts', async (t) => {
  const namesIn = async (part?: 'machine' | 'agent') => [...readMetrics(await aScraper().metrics(part)).keys()]
  const [machine, agent, both] = await Promise.all([namesIn('machine'), namesIn('agent'), namesIn()])
  t.ok(machine.includes('node_load1'))
  t.ok(agent.includes('kubelet_running_pods'))
  t.same([...agent, ...machine].toSorted(), both.toSorted())
})

test('this machine has figures, too', async (t) => {
  const families = await machineMetrics({ root: '/', filesystemAt: filesystemUsage() }, 0)
  const names = families.filter(({ samples }) => [...samples].length > 0).map(({ name }) => name)
  for (const name of ['node_memory_MemAvailable_bytes', 'node_load1', 'node_cpu_seconds_total']) {
    t.ok(names.includes(name), name)
  }
})
