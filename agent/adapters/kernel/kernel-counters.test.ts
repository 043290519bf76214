import { test } from 'tap'
import { metricsText } from '../../../daemon/prometheus-text.ts'
import { readMetrics } from '../../../daemon/testing/prometheus-parser.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { kernelCounters } from './kernel-counters.ts'

const familiesOf = (root: string) => readMetrics([...metricsText(kernelCounters(root))].join(''))

test('a memory card has the counters that stock boards plot', async (t) => {
  const families = familiesOf(savedTree('usage-metrics'))
  const ofCard = (name: string) =>
    families.get(`node_disk_${name}`)?.samples.find(({ labels }) => labels['device'] === 'mmcblk0')?.value
  t.equal(ofCard('reads_completed_total'), 21345)
  t.equal(ofCard('read_bytes_total'), 1654321 * 512)
  t.equal(ofCard('read_time_seconds_total'), 43.21)
  t.equal(ofCard('writes_completed_total'), 98765)
  t.equal(ofCard('written_bytes_total'), 4567890 * 512)
  t.equal(ofCard('write_time_seconds_total'), 987.654)
  t.equal(ofCard('io_now'), 1)
  t.equal(families.get('node_disk_io_now')?.type, 'gauge')
  t.equal(ofCard('io_time_seconds_total'), 345.678)
  t.equal(ofCard('flush_requests_total'), 321)
})

test('partitions of a card stay, as with node_exporter; memory disks and loops do not', async (t) => {
  const samples = familiesOf(savedTree('usage-metrics')).get('node_disk_io_time_seconds_total')?.samples ?? []
  t.same(
    samples.map(({ labels }) => labels['device']),
    ['mmcblk0', 'mmcblk0p1', 'mmcblk0p2', 'sda'],
  )
})

test('a kernel that counts no discards and flushes has no such metric', async (t) => {
  const device = familiesOf(savedTree('usage-metrics'))
    .get('node_disk_discards_completed_total')
    ?.samples.map(({ labels }) => labels['device'])
  t.same(device, ['mmcblk0', 'mmcblk0p1', 'mmcblk0p2'], 'not those of the disk with eleven columns')
})

test('page faults, swapping, OOM kills and open files are counted', async (t) => {
  const families = familiesOf(savedTree('usage-metrics'))
  const value = (name: string) => families.get(name)?.samples[0]?.value
  t.equal(value('node_vmstat_oom_kill'), 2)
  t.equal(value('node_vmstat_pgfault'), 7654321)
  t.equal(value('node_vmstat_pgmajfault'), 4321)
  t.equal(value('node_vmstat_pswpout'), 17)
  t.notOk(families.has('node_vmstat_nr_free_pages'))
  t.equal(value('node_filefd_allocated'), 1184)
  t.equal(value('node_filefd_maximum'), 2 ** 63)
})

test('a link is up or down; one whose state the kernel does not have is left out', async (t) => {
  t.same(familiesOf(savedTree('usage-metrics')).get('node_network_up')?.samples, [
    { labels: { device: 'eth0' }, value: 1 },
    { labels: { device: 'wlan0' }, value: 0 },
  ])
})

test('a machine without these files has none of the metrics', async (t) => {
  t.same([...metricsText(kernelCounters(savedTree('pi-5-hot')))], [])
})
