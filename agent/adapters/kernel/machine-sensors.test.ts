import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { scheduledChecks } from '../../health/checks.ts'
import type { KernelLine } from '../../health/kernel-log.ts'
import { sourceOf } from '../../testing/health-source.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { machineSensors } from './machine-sensors.ts'

const noLimit = { highTemperatureCelsius: undefined }

/** What is wrong, and what is well, by one look at a machine. */
async function seen(root: string, settings: { readonly highTemperatureCelsius: number | undefined } = noLimit) {
  const checks = scheduledChecks(sourceOf(machineSensors({ root })), settings)
  const findings = await Promise.all(
    checks.map(async ({ type, look }) => [type, await Promise.resolve(look()).catch(() => undefined)] as const),
  )
  const by = (status: string) => findings.filter(([, found]) => found?.status === status)
  return {
    wrong: by('True').map(([type, found]) => `${type} ${found?.reason}`),
    well: by('False').map(([type, found]) => `${type} ${found?.reason}`),
    messageOf: (type: string) => findings.find(([other]) => other === type)?.[1]?.message,
  }
}

function copyOf(t: Test, tree: string): string {
  const root = t.testdir({})
  cpSync(savedTree(tree), root, { recursive: true })
  return root
}

test('a machine that has no sensors has none of these conditions', async (t) => {
  const { wrong, well } = await seen(t.testdir({}))
  t.same({ wrong, well }, { wrong: [], well: [] })
})

test('a weak supply is a condition, and so is that the board slows down for it', async (t) => {
  const { wrong, well, messageOf } = await seen(savedTree('pi-4-weak-supply'))
  t.same(wrong, ['UnderVoltage SupplyTooWeak', 'ThermalThrottling ProcessorSlowedDown'])
  t.same(well, ['HighTemperature TemperatureFine'], 'and a card does not report its wear')
  t.match(messageOf('UnderVoltage'), /Use the supply made for this board/)
  t.match(messageOf('ThermalThrottling'), /slowed down now \(throttled\)/, 'the fan is not what slows it')
})

test('what happened since the machine was started is remembered, and kept apart from now', async (t) => {
  const root = copyOf(t, 'pi-4-weak-supply')
  const lines: ((line: KernelLine) => void)[] = []
  const sensors = machineSensors({ root, kernel: { subscribe: (listener) => void lines.push(listener) } })
  writeFileSync(join(root, 'sys/class/hwmon/hwmon1/in0_lcrit_alarm'), '0\n')
  writeFileSync(join(root, 'sys/devices/platform/soc/soc:firmware/get_throttled'), '0\n')
  t.match(sensors.power(), { underVoltage: { now: false, before: false }, throttling: { now: false, before: false } })
  const text = 'hwmon hwmon1: Undervoltage detected!'
  for (const listener of lines) listener({ text, ageMs: 0 })
  t.match(sensors.power().underVoltage, { now: false, before: true }, 'the kernel logged it between two looks')
  writeFileSync(join(root, 'sys/devices/platform/soc/soc:firmware/get_throttled'), '40004\n')
  t.match(sensors.power().throttling, { now: true, before: true })
  writeFileSync(join(root, 'sys/devices/platform/soc/soc:firmware/get_throttled'), '0\n')
  t.match(sensors.power().throttling, { now: false, before: true }, 'the firmware has forgotten it')
  t.same((await seen(copyOf(t, 'compute-module-4-worn'))).well.slice(0, 2), [
    'UnderVoltage SupplyIsEnough',
    'ThermalThrottling ProcessorNotSlowedDown',
  ])
})

test('a Raspberry Pi is hot where its firmware begins to slow it down, and cool five degrees below', async (t) => {
  const root = copyOf(t, 'pi-5-hot')
  t.same((await seen(root)).wrong, ['ThermalThrottling ProcessorSlowedDown', 'HighTemperature TooHot'])
  t.same((await seen(root, { highTemperatureCelsius: 90 })).wrong, ['ThermalThrottling ProcessorSlowedDown'])
  const heat = scheduledChecks(sourceOf(machineSensors({ root })), noLimit).find(
    ({ type }) => type === 'HighTemperature',
  )
  t.match(await heat?.look(), { status: 'True', message: /cpu-thermal \(limit 80 °C\)/ })
  for (const [milli, status] of [
    ['78000', 'True'],
    ['75000', 'True'],
    ['74900', 'False'],
    ['79900', 'False'],
    ['80000', 'True'],
  ]) {
    writeFileSync(join(root, 'sys/class/thermal/thermal_zone0/temp'), `${milli}\n`)
    t.match(await heat?.look(), { status }, `${milli} after what was before`)
  }
})

test('a PC reports it by its counters, and is hot ten degrees before it would be switched off', async (t) => {
  const root = copyOf(t, 'pc-throttling')
  const { wrong, well } = await seen(root)
  t.same(wrong, ['ThermalThrottling ProcessorSlowedDown', 'HighTemperature TooHot'])
  t.same(well, ['MemoryCgroupDisabled MemoryCgroupEnabled'])
  writeFileSync(join(root, 'sys/class/thermal/cooling_device0/cur_state'), '0\n')
  const sensors = machineSensors({ root })
  t.match(sensors.power().throttling, { now: false, before: true }, 'counted, but not while we looked')
  writeFileSync(join(root, 'sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count'), '41\n')
  t.match(sensors.power().throttling, { now: true, by: ['its own thermal monitor'] })
})

test('flash memory that reports its age is a condition when it is old', async (t) => {
  const root = copyOf(t, 'compute-module-4-worn')
  const { wrong, messageOf } = await seen(root)
  t.same(wrong, ['StorageWear StorageAtEndOfLife'])
  t.match(messageOf('StorageWear'), /mmcblk0 has used more than the whole of its life, 90 % of its spare blocks.*now/)
  const device = join(root, 'sys/block/mmcblk0/device')
  writeFileSync(join(device, 'pre_eol_info'), '0x01\n')
  writeFileSync(join(device, 'life_time'), '0x0a 0x02\n')
  t.same((await seen(root)).wrong, ['StorageWear StorageWorn'])
  writeFileSync(join(device, 'life_time'), '0x03 0x02\n')
  const young = await seen(root)
  t.ok(young.well.includes('StorageWear StorageNotWorn'))
  t.match(young.messageOf('StorageWear'), 'mmcblk0 has used up to 30 % of its life')
  writeFileSync(join(device, 'life_time'), '0x00 0x00\n')
  writeFileSync(join(device, 'pre_eol_info'), '0x00\n')
  t.notOk((await seen(root)).messageOf('StorageWear'), 'one that does not report it has no such condition')
})

test('a weak Wi-Fi signal is a condition, and must become clearly better', async (t) => {
  const root = copyOf(t, 'pi-zero-2-weak-wifi')
  const wifi = scheduledChecks(sourceOf(machineSensors({ root })), noLimit).find(({ type }) => type === 'WeakWifi')
  t.match(await wifi?.look(), { status: 'True', message: /wlan0 is below -80 dBm/ })
  const at = (dbm: number) => writeFileSync(join(root, 'proc/net/wireless'), ` wlan0: 0000   26.  ${dbm}.  -256 0\n`)
  at(-78)
  t.match(await wifi?.look(), { status: 'True' })
  at(-75)
  t.match(await wifi?.look(), { status: 'False' })
  at(-78)
  t.match(await wifi?.look(), { status: 'False' })
})

test('a disabled memory cgroup is a condition that names the file to edit on this release and the words to add', async (t) => {
  const { wrong, messageOf } = await seen(savedTree('pi-os-without-memory-cgroup'))
  t.same(wrong, ['MemoryCgroupDisabled MemoryCgroupOff'])
  t.match(
    messageOf('MemoryCgroupDisabled'),
    /"cgroup_enable=memory cgroup_memory=1" to the one line of \/boot\/firmware\/cmdl/,
  )
  const older = copyOf(t, 'pi-os-without-memory-cgroup')
  writeFileSync(join(older, 'boot/cmdline.txt'), 'console=tty1\n')
  writeFileSync(join(older, 'boot/firmware/cmdline.txt'), 'DO NOT EDIT')
  t.match((await seen(older)).messageOf('MemoryCgroupDisabled'), /one line of \/boot\/cmdline.txt/)
  t.match((await seen(savedTree('pi-4-cgroup-v2'))).well, ['MemoryCgroupDisabled MemoryCgroupEnabled'])
})

test('a clock set by a time server is recognized by a file, where systemd-timesyncd runs at all', async (t) => {
  const root = t.testdir({ proc: { uptime: '725.32 2800.12\n' } })
  const sensors = machineSensors({ root })
  t.same(sensors.time(), { synchronized: undefined, uptimeMs: 725_320 })
  mkdirSync(join(root, 'run/systemd/timesync'), { recursive: true })
  t.match(sensors.time(), { synchronized: false })
  writeFileSync(join(root, 'run/systemd/timesync/synchronized'), '')
  t.match(sensors.time(), { synchronized: true })
  mkdirSync(join(root, 'proc/1'))
  const stat = `1 (systemd) S 0 1 1 0 -1 4194560 11 22 0 0 3 4 0 0 20 0 1 0 70032 172000000 3000`
  writeFileSync(join(root, 'proc/1/stat'), stat)
  t.match(sensors.time(), { uptimeMs: 25_000 }, 'a machine that is a container started after its kernel')
})
