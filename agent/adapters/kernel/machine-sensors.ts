/**
 * The kernel's values for power, temperature, wear, Wi-Fi and memory cgroups. Starts no process and writes nothing; values that
 * the machine does not have are undefined. The kernel answers `/sys` and `/proc` from memory, but sensors take up to some
 * milliseconds: read them only every few seconds.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ClockReading } from '../../health/clock.ts'
import type { KernelLog } from '../../health/kernel-log.ts'
import type { MemoryCgroupReading } from '../../health/memory-cgroup.ts'
import {
  type FirmwareFlags,
  firmwareFlags,
  isUnderVoltageLine,
  type PowerReading,
  type Seen,
} from '../../health/power.ts'
import type { FlashDevice } from '../../health/storage.ts'
import type { TemperatureReading, ThermalZone } from '../../health/temperature.ts'
import type { RadioLink } from '../../health/wifi.ts'
import { textOf } from './kernel-files.ts'

export interface MachineSensors {
  power(): PowerReading
  temperature(): TemperatureReading
  flash(): readonly FlashDevice[]
  radio(): readonly RadioLink[]
  memoryCgroup(): MemoryCgroupReading | undefined
  /** What the machine reports about its clock. */
  time(): Pick<ClockReading, 'synchronized' | 'uptimeMs'>
  /** The process ID of the system's dockerd; undefined without a PID file. */
  dockerPid(): number | undefined
  /** The process waits for the kernel, uninterruptibly. */
  isStuck(pid: number): boolean
}

export type MachineSensorsNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  readonly kernel?: Pick<KernelLog, 'subscribe'>
  /** Used where systemd-timesyncd does not run. */
  readonly otherTimeService?: { synchronized(): true | undefined }
}

export function machineSensors({ root, kernel, otherTimeService }: MachineSensorsNeeds): MachineSensors {
  const files = filesBelow(root)
  let underVoltageSeen = false
  let throttlingSeen = false
  let throttles: number | undefined
  kernel?.subscribe(({ text }) => {
    underVoltageSeen ||= isUnderVoltageLine(text)
  })

  return {
    power() {
      const flags = firmware(files)
      const alarm = supplyAlarm(files)
      const supply = together([flags?.underVoltage, alarm === undefined ? undefined : { now: alarm, before: alarm }])
      underVoltageSeen ||= supply?.before === true
      const count = throttleCount(files)
      const cooling = coolingNow(files)
      const counted = count === undefined ? undefined : { now: count > (throttles ?? count), before: count > 0 }
      throttles = count
      const cooled = cooling === undefined ? undefined : { now: cooling.length > 0, before: cooling.length > 0 }
      const slowed = together([flags?.throttling, counted, cooled])
      throttlingSeen ||= slowed?.before === true
      const by = [
        ...(flags?.throttling.by ?? []),
        ...(counted?.now ? ['its own thermal monitor'] : []),
        ...(cooling ?? []),
      ]
      return {
        underVoltage: supply && { ...supply, before: underVoltageSeen },
        throttling: slowed && { ...slowed, before: throttlingSeen, by },
      }
    },
    temperature: () => ({ zones: thermalZones(files), board: files.text('proc/device-tree/model') }),
    flash: () =>
      files.names('sys/block', /^mmcblk\d+$/).map((name) => {
        const device = `sys/block/${name}/device`
        const life = files.text(`${device}/life_time`)?.split(/\s+/) ?? []
        return {
          name,
          lifeTime: life.map(Number).filter(Number.isFinite),
          preEndOfLife: files.number(`${device}/pre_eol_info`),
        }
      }),
    radio: () =>
      [...(files.text('proc/net/wireless') ?? '').matchAll(/^ *([^\s:]+): +\S+ +\S+ +(-\d+)\.?\s/gm)].map(
        ([, name = '', level]) => ({ name, signalDbm: Number(level) }),
      ),
    memoryCgroup: () => memoryCgroup(files),
    time: () => {
      const timesync = 'run/systemd/timesync'
      return {
        synchronized: files.has(timesync) ? files.has(`${timesync}/synchronized`) : otherTimeService?.synchronized(),
        uptimeMs: uptimeMs(files),
      }
    },
    dockerPid: () => files.number('run/docker.pid'),
    isStuck: (pid) => /\) D /.test(files.text(`proc/${pid}/stat`) ?? ''),
  }
}

/**
 * Time since process 1 started: for a machine that is a container, the kernel is older. A tick is 10 ms in all programs. LXCFS replaces
 * the uptime by that of the container (proc_uptime_read in src/proc_fuse.c), and not the start, which can then be later than it.
 */
function uptimeMs(files: Files): number {
  const kernelMs = Number(files.text('proc/uptime')?.split(' ')[0] ?? 0) * 1000
  const afterName = files.text('proc/1/stat')?.split(') ')[1]?.split(' ') ?? []
  const startedMs = Number(afterName[19] ?? 0) * 10
  return startedMs > kernelMs ? kernelMs : kernelMs - startedMs
}

type Files = ReturnType<typeof filesBelow>

function filesBelow(root: string) {
  /** Undefined when the file does not exist or cannot be read: some sensors reject reads while they sleep. */
  const text = (path: string): string | undefined => textOf(join(root, path))?.replace(/\0/g, '').trim()
  return {
    text,
    number: (path: string): number | undefined => {
      const written = text(path)
      return written === undefined || written === '' || !Number.isFinite(Number(written)) ? undefined : Number(written)
    },
    names: (folder: string, like: RegExp): readonly string[] => {
      try {
        return readdirSync(join(root, folder))
          .filter((name) => like.test(name))
          .toSorted()
      } catch {
        return []
      }
    },
    has: (path: string): boolean => existsSync(join(root, path)),
  }
}

/** The firmware's last answer, from a driver of Raspberry Pi's kernel; hexadecimal without a prefix. */
function firmware(files: Files): FirmwareFlags | undefined {
  const driver = 'sys/bus/platform/drivers/raspberrypi-firmware'
  const devices = 'sys/devices/platform'
  const places = [
    ...files.names(driver, /:firmware$/).map((name) => `${driver}/${name}`),
    `${devices}/soc/soc:firmware`,
    ...files.names(devices, /^soc@/).map((name) => `${devices}/${name}/${name}:firmware`),
  ]
  const value = places.map((place) => files.text(`${place}/get_throttled`)).find((text) => text !== undefined)
  return value !== undefined && /^(0x)?[0-9a-f]+$/i.test(value) ? firmwareFlags(Number.parseInt(value, 16)) : undefined
}

/** The kernel reads the firmware every two seconds and reports an under-voltage since the last read. */
function supplyAlarm(files: Files): boolean | undefined {
  const sensors = files.names('sys/class/hwmon', /^hwmon\d+$/).map((name) => `sys/class/hwmon/${name}`)
  const supply = sensors.find((sensor) => files.text(`${sensor}/name`) === 'rpi_volt')
  const alarm = supply && files.number(`${supply}/in0_lcrit_alarm`)
  return alarm === undefined ? undefined : alarm !== 0
}

/** How often the processors of a PC throttled themselves. */
function throttleCount(files: Files): number | undefined {
  const cpus = 'sys/devices/system/cpu'
  const counts = files
    .names(cpus, /^cpu\d+$/)
    .flatMap((cpu) =>
      ['core', 'package'].map((of) => files.number(`${cpus}/${cpu}/thermal_throttle/${of}_throttle_count`)),
    )
    .filter((count) => count !== undefined)
  return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0)
}

/** Active cooling devices of the kernel that throttle the processor; fans do not. */
function coolingNow(files: Files): readonly string[] | undefined {
  const folder = 'sys/class/thermal'
  const devices = files.names(folder, /^cooling_device\d+$/).flatMap((name) => {
    const kind = files.text(`${folder}/${name}/type`) ?? ''
    const state = files.number(`${folder}/${name}/cur_state`)
    return /cpufreq|cpuidle|devfreq|^Processor$|gpu/i.test(kind) && state !== undefined ? [{ kind, state }] : []
  })
  return devices.length === 0 ? undefined : devices.filter(({ state }) => state > 0).map(({ kind }) => kind)
}

function together(seen: readonly (Seen | undefined)[]): Seen | undefined {
  const readings = seen.filter((one) => one !== undefined)
  if (readings.length === 0) return undefined
  return { now: readings.some(({ now }) => now), before: readings.some(({ before }) => before) }
}

function thermalZones(files: Files): readonly ThermalZone[] {
  const folder = 'sys/class/thermal'
  return files.names(folder, /^thermal_zone\d+$/).flatMap((zone) => {
    const path = `${folder}/${zone}`
    const milli = files.number(`${path}/temp`)
    if (milli === undefined) return []
    const trips = files.names(path, /^trip_point_\d+_temp$/).flatMap((name) => {
      const limit = files.number(`${path}/${name}`)
      // Some firmware reports an invalid value (0, or far below freezing) for an unused limit.
      if (limit === undefined || limit <= 0) return []
      return [{ kind: files.text(`${path}/${name.replace(/temp$/, 'type')}`) ?? '', celsius: limit / 1000 }]
    })
    return [{ name: files.text(`${path}/type`) ?? zone, celsius: milli / 1000, trips }]
  })
}

/** Undefined on a machine without cgroups. */
function memoryCgroup(files: Files): MemoryCgroupReading | undefined {
  const unified = files.text('sys/fs/cgroup/cgroup.controllers')
  const listed = files.text('proc/cgroups')
  if (unified === undefined && listed === undefined) return undefined
  const enabled = listed && /^memory\s+\d+\s+\d+\s+(\d)$/m.exec(listed)?.[1]
  const isEnabled = unified === undefined ? enabled === '1' : unified.split(' ').includes('memory')
  const places = [
    'boot/firmware/cmdline.txt',
    'boot/cmdline.txt',
    'boot/firmware/current/cmdline.txt',
    'etc/default/grub',
  ]
  const file = places.find((place) => files.has(place) && !isMovedElsewhere(files, place))
  return {
    isEnabled,
    commandLine: files.text('proc/cmdline') ?? '',
    file: file === undefined ? undefined : `/${file}`,
  }
}

/** Since Debian 12 `/boot/cmdline.txt` only states that the file has moved to `/boot/firmware`. */
function isMovedElsewhere(files: Files, path: string): boolean {
  return /DO NOT EDIT/i.test(files.text(path) ?? '')
}
