/** Metrics of the machine with node_exporter's names, from the same files of the kernel. Starts no process. */
import { readdirSync, readlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { counter, gauge, type MetricFamily, type MetricSample, one } from '../../../daemon/prometheus-text.ts'
import { isOfPod } from '../../usage/pod-metrics.ts'
import type { FilesystemUsage } from '../disk/filesystem-usage.ts'
import { isRemote } from '../disk/remote/remote-mounts.ts'
import { kernelCounters } from './kernel-counters.ts'
import { textOf, unescapedPath } from './kernel-files.ts'
import { interfacesOf } from './net-dev.ts'

/** Upper limits on the number of series. */
const mostFilesystems = 32
const mostSensors = 128
const ticksPerSecond = 100

export type MachineMetricsNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  readonly filesystemAt: FilesystemUsage
}

/** Values that the machine does not have are omitted. */
export async function machineMetrics(
  { root, filesystemAt }: MachineMetricsNeeds,
  wallMs: number,
): Promise<readonly MetricFamily[]> {
  const text = (path: string) => textOf(join(root, path))
  return [
    ...uname(text),
    ...times(text('proc/stat') ?? '', wallMs),
    ...loads(text('proc/loadavg')),
    ...memory(text('proc/meminfo') ?? ''),
    ...pressures(text),
    ...(await filesystems(text('proc/self/mounts') ?? '', filesystemAt)),
    ...hwmon(root),
    ...thermalZones(root),
    ...network(text('proc/net/dev') ?? ''),
    ...kernelCounters(root),
  ]
}

type Text = (path: string) => string | undefined

function uname(text: Text): readonly MetricFamily[] {
  const value = (name: string) => (text(`proc/sys/kernel/${name}`) ?? '').trim()
  const labels = {
    sysname: 'Linux',
    release: value('osrelease'),
    version: value('version'),
    machine: machines[process.arch] ?? process.arch,
    nodename: value('hostname'),
    domainname: value('domainname'),
  }
  return [gauge('node_uname_info', 'The kernel.', one(1, labels))]
}

const machines: { readonly [arch: string]: string } = { x64: 'x86_64', arm64: 'aarch64', arm: 'armv7l' }

function times(stat: string, wallMs: number): readonly MetricFamily[] {
  const modes = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal']
  const cpus = [...stat.matchAll(/^cpu(\d+) ([\d ]+)$/gm)].flatMap(([, cpu = '', ticks = '']) =>
    ticks.split(' ').flatMap((tick, i): MetricSample[] => {
      const mode = modes[i]
      return mode === undefined ? [] : [{ labels: { cpu, mode }, value: Number(tick) / ticksPerSecond }]
    }),
  )
  return [
    gauge('node_time_seconds', 'The date.', one(wallMs / 1000)),
    gauge('node_boot_time_seconds', 'When the machine started.', one(numberAfter(stat, 'btime'))),
    counter('node_cpu_seconds_total', 'Time each processor spent in each mode.', cpus),
    counter('node_context_switches_total', 'Context switches.', one(numberAfter(stat, 'ctxt'))),
    counter('node_forks_total', 'Processes started.', one(numberAfter(stat, 'processes'))),
    gauge('node_procs_running', 'Processes that run.', one(numberAfter(stat, 'procs_running'))),
    gauge('node_procs_blocked', 'Processes that wait for a disk.', one(numberAfter(stat, 'procs_blocked'))),
  ]
}

function numberAfter(text: string, name: string): number | undefined {
  const found = new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}

function loads(loadavg: string | undefined): readonly MetricFamily[] {
  const numbers = loadavg?.split(' ').slice(0, 3).map(Number) ?? []
  return [1, 5, 15].map((minutes, i) => gauge(`node_load${minutes}`, `Load over ${minutes} min.`, one(numbers[i])))
}

function memory(meminfo: string): readonly MetricFamily[] {
  return [...meminfo.matchAll(/^([\w()]+):\s+(\d+)( kB)?$/gm)].map(([, name = '', value, kilo]) => {
    const clean = name.replace(/\((.*)\)/, '_$1')
    const bytes = kilo !== undefined
    return gauge(
      `node_memory_${clean}${bytes ? '_bytes' : ''}`,
      `${name} of /proc/meminfo.`,
      one(Number(value) * (bytes ? 1024 : 1)),
    )
  })
}

/** Time in which some, or all, tasks waited (PSI). The kernel may have it disabled. */
function pressures(text: Text): readonly MetricFamily[] {
  return ['cpu', 'io', 'memory'].flatMap((what) => {
    const pressure = text(`proc/pressure/${what}`) ?? ''
    const total = (who: string) => {
      const micros = new RegExp(`^${who} .*total=(\\d+)$`, 'm').exec(pressure)?.[1]
      return micros === undefined ? undefined : Number(micros) / 1e6
    }
    const name = `node_pressure_${what}`
    const waiting = counter(
      `${name}_waiting_seconds_total`,
      `Time in which at least one task waited for ${what}.`,
      one(total('some')),
    )
    // The kernel reports zeros: a processor never waits for a processor.
    if (what === 'cpu') return [waiting]
    return [
      waiting,
      counter(`${name}_stalled_seconds_total`, `Time in which all tasks waited for ${what}.`, one(total('full'))),
    ]
  })
}

/** Filesystems of block devices, each once, even if it is mounted in several places. */
async function filesystems(mounts: string, filesystemAt: FilesystemUsage): Promise<readonly MetricFamily[]> {
  const seen = new Set<string>()
  const found = []
  for (const line of mounts.split('\n')) {
    const [device = '', point = '', fstype = '', options = ''] = line.split(' ').map(unescapedPath)
    // Such as /dev/fuse, which is not a block device. A call on one that does not answer would hold a thread.
    if (fstype !== 'fuseblk' && isRemote({ path: point, type: fstype })) continue
    if (!device.startsWith('/dev/') || seen.has(device) || seen.size >= mostFilesystems) continue
    seen.add(device)
    found.push({ labels: { device, fstype, mountpoint: point }, readOnly: /^ro(,|$)/.test(options) })
  }
  const read = await Promise.all(
    found.map(async (one) => ({ ...one, reading: await filesystemAt(one.labels.mountpoint) })),
  )
  const each = (value: (row: (typeof read)[number]) => number | undefined) =>
    read.flatMap((row) => one(value(row), row.labels))
  return [
    gauge(
      'node_filesystem_size_bytes',
      'Size.',
      each(({ reading }) => reading?.capacityBytes),
    ),
    gauge(
      'node_filesystem_free_bytes',
      'Free.',
      each(({ reading }) => reading && reading.capacityBytes - reading.usedBytes),
    ),
    gauge(
      'node_filesystem_avail_bytes',
      'Space available to non-root users.',
      each(({ reading }) => reading?.availableBytes),
    ),
    gauge(
      'node_filesystem_files',
      'Inodes.',
      each(({ reading }) => reading?.inodes),
    ),
    gauge(
      'node_filesystem_files_free',
      'Free inodes.',
      each(({ reading }) => reading?.inodesFree),
    ),
    gauge(
      'node_filesystem_readonly',
      '1 if the filesystem is read-only.',
      each(({ readOnly }) => (readOnly ? 1 : 0)),
    ),
    gauge(
      'node_filesystem_device_error',
      '1 if the filesystem does not answer.',
      each(({ reading }) => (reading ? 0 : 1)),
    ),
  ]
}

const sensorKinds = [
  { file: /^(temp\d+)_input$/, name: 'node_hwmon_temp_celsius', help: 'Temperature.', scale: 1e-3 },
  { file: /^(temp\d+)_crit$/, name: 'node_hwmon_temp_crit_celsius', help: 'Critical temperature.', scale: 1e-3 },
  { file: /^(in\d+)_input$/, name: 'node_hwmon_in_volts', help: 'Voltage.', scale: 1e-3 },
  { file: /^(in\d+)_lcrit_alarm$/, name: 'node_hwmon_in_lcrit_alarm', help: '1: the voltage is too low.', scale: 1 },
  { file: /^(curr\d+)_input$/, name: 'node_hwmon_curr_amps', help: 'Current.', scale: 1e-3 },
  { file: /^(fan\d+)_input$/, name: 'node_hwmon_fan_rpm', help: 'Turns of a fan in a minute.', scale: 1 },
] as const

function hwmon(root: string): readonly MetricFamily[] {
  const folder = join(root, 'sys/class/hwmon')
  const chips = namesIn(folder).map((name) => ({ path: join(folder, name), chip: chipOf(join(folder, name), name) }))
  const names = chips.flatMap(({ path, chip }) => one(1, { chip, chip_name: textOf(join(path, 'name'))?.trim() }))
  return [
    gauge('node_hwmon_chip_names', 'The chips.', names),
    ...sensorKinds.map(({ file, name, help, scale }) => {
      const samples = chips.flatMap(({ path, chip }) =>
        namesIn(path).flatMap((found): readonly MetricSample[] => {
          const sensor = file.exec(found)?.[1]
          const value = sensor === undefined ? undefined : numberAt(join(path, found))
          return one(value === undefined ? undefined : value * scale, { chip, sensor })
        }),
      )
      return gauge(name, help, samples.slice(0, mostSensors))
    }),
  ]
}

/** `soc_firmware`: the bus and the device of the chip, which do not change when chips are renumbered. */
function chipOf(path: string, otherwise: string): string {
  try {
    const device = basename(readlinkSync(join(path, 'device')))
    const bus = basename(readlinkSync(join(path, 'device/subsystem')))
    return `${bus}_${device}`.toLowerCase().replace(/[^a-z0-9_]/g, '_')
  } catch {
    return otherwise
  }
}

function thermalZones(root: string): readonly MetricFamily[] {
  const folder = join(root, 'sys/class/thermal')
  const samples = namesIn(folder).flatMap((name) => {
    const zone = /^thermal_zone(\d+)$/.exec(name)?.[1]
    const milli = zone === undefined ? undefined : numberAt(join(folder, name, 'temp'))
    const type = textOf(join(folder, name, 'type'))?.trim() ?? ''
    return one(milli === undefined ? undefined : milli / 1000, { type, zone })
  })
  return [gauge('node_thermal_zone_temp', 'Temperature of a zone in degrees Celsius.', samples)]
}

function network(dev: string): readonly MetricFamily[] {
  const interfaces = interfacesOf(dev).filter(({ name }) => !isOfPod(name))
  const each = (value: (reading: (typeof interfaces)[number]) => number) =>
    interfaces.map((reading) => ({ labels: { device: reading.name }, value: value(reading) }))
  return [
    counter(
      'node_network_receive_bytes_total',
      'Bytes received.',
      each(({ rxBytes }) => rxBytes),
    ),
    counter(
      'node_network_receive_packets_total',
      'Packets received.',
      each(({ rxPackets }) => rxPackets),
    ),
    counter(
      'node_network_receive_errs_total',
      'Errors on receipt.',
      each(({ rxErrors }) => rxErrors),
    ),
    counter(
      'node_network_receive_drop_total',
      'Packets dropped on receipt.',
      each(({ rxDropped }) => rxDropped),
    ),
    counter(
      'node_network_transmit_bytes_total',
      'Bytes sent.',
      each(({ txBytes }) => txBytes),
    ),
    counter(
      'node_network_transmit_packets_total',
      'Packets sent.',
      each(({ txPackets }) => txPackets),
    ),
    counter(
      'node_network_transmit_errs_total',
      'Errors when sent.',
      each(({ txErrors }) => txErrors),
    ),
    counter(
      'node_network_transmit_drop_total',
      'Packets dropped when sent.',
      each(({ txDropped }) => txDropped),
    ),
  ]
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted()
  } catch {
    return []
  }
}

function numberAt(path: string): number | undefined {
  const text = textOf(path)?.trim()
  return text === undefined || text === '' || !Number.isFinite(Number(text)) ? undefined : Number(text)
}
