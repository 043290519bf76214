/**
 * The kernel's counters of disks, memory, open files and links, with node_exporter's names. The files are read at each call;
 * no process is started. What the kernel does not have is left out.
 */
import { join } from 'node:path'
import { counter, gauge, type MetricFamily, one } from '../../../daemon/prometheus-text.ts'
import { isOfPod } from '../../usage/pod-metrics.ts'
import { textOf } from './kernel-files.ts'
import { interfacesOf } from './net-dev.ts'

/** Upper limits on the number of series. */
const mostDisks = 64
const mostInterfaces = 64

/** `root`: `/`, or a saved tree. */
export function kernelCounters(root: string): readonly MetricFamily[] {
  const text = (path: string) => textOf(join(root, path))
  return [
    ...disks(text('proc/diskstats') ?? ''),
    ...virtualMemory(text('proc/vmstat') ?? ''),
    ...openFiles(text('proc/sys/fs/file-nr')),
    ...links(root, text('proc/net/dev') ?? ''),
  ]
}

/** As node_exporter's default: no memory disks, and no partitions of disks whose partitions have a number only. */
const ignoredDisk = /^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$/

/**
 * The columns of /proc/diskstats behind the name (Documentation/admin-guide/iostats.rst), each with the unit in which the kernel
 * counts: a sector is 512 bytes on every disk, times are milliseconds.
 */
const diskColumns = [
  ['reads_completed_total', 'Reads completed.', 1],
  ['reads_merged_total', 'Reads that were merged with another one.', 1],
  ['read_bytes_total', 'Bytes read.', 512],
  ['read_time_seconds_total', 'Time spent by all reads.', 1e-3],
  ['writes_completed_total', 'Writes completed.', 1],
  ['writes_merged_total', 'Writes that were merged with another one.', 1],
  ['written_bytes_total', 'Bytes written.', 512],
  ['write_time_seconds_total', 'Time spent by all writes.', 1e-3],
  ['io_now', 'Requests in progress.', 1],
  ['io_time_seconds_total', 'Time in which at least one request was in progress.', 1e-3],
  ['io_time_weighted_seconds_total', 'Time of all requests together.', 1e-3],
  ['discards_completed_total', 'Discards completed.', 1],
  ['discards_merged_total', 'Discards that were merged with another one.', 1],
  ['discarded_sectors_total', 'Sectors discarded.', 1],
  ['discard_time_seconds_total', 'Time spent by all discards.', 1e-3],
  ['flush_requests_total', 'Flushes completed.', 1],
  ['flush_requests_time_seconds_total', 'Time spent by all flushes.', 1e-3],
] as const

function disks(diskstats: string): readonly MetricFamily[] {
  const rows = diskstats
    .split('\n')
    .map((line) => line.trim().split(/\s+/).slice(2))
    .flatMap(([device = '', ...values]) =>
      device === '' || ignoredDisk.test(device) ? [] : [{ device, values: values.map(Number) }],
    )
    .slice(0, mostDisks)
  return diskColumns.map(([name, help, unit], column) => {
    const samples = rows.flatMap(({ device, values }) => {
      const value = values[column]
      return one(value === undefined || !Number.isFinite(value) ? undefined : value * unit, { device })
    })
    return (name === 'io_now' ? gauge : counter)(`node_disk_${name}`, help, samples)
  })
}

/** node_exporter's default (--collector.vmstat.fields). */
const exportedField = /^(oom_kill|pgpg|pswp|pg.*fault)/

function virtualMemory(vmstat: string): readonly MetricFamily[] {
  return [...vmstat.matchAll(/^(\w+) (\d+)$/gm)]
    .filter(([, field = '']) => exportedField.test(field))
    .map(([, field = '', value]) => counter(`node_vmstat_${field}`, `${field} of /proc/vmstat.`, one(Number(value))))
}

function openFiles(fileNr: string | undefined): readonly MetricFamily[] {
  const [allocated, , maximum] = fileNr?.trim().split(/\s+/).map(Number) ?? []
  return [
    gauge('node_filefd_allocated', 'Open files.', one(allocated)),
    gauge('node_filefd_maximum', 'Highest number of open files.', one(maximum)),
  ]
}

function links(root: string, dev: string): readonly MetricFamily[] {
  const states = interfacesOf(dev)
    .filter(({ name }) => !isOfPod(name))
    .slice(0, mostInterfaces)
    .map(({ name }) => ({ name, state: textOf(join(root, 'sys/class/net', name, 'operstate'))?.trim() }))
  const up = states.flatMap(({ name, state }) =>
    one(state === undefined ? undefined : state === 'up' ? 1 : 0, { device: name }),
  )
  return [gauge('node_network_up', '1 if the link is up.', up)]
}
