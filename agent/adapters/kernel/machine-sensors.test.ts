import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
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
  const root = testFolder(t)
  cpSync(savedTree(tree), root, { recursive: true })
  return root
}

test('a machine that has no sensors has none of these conditions', async (t) => {
  const { wrong, well } = await seen(testFolder(t))
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
  const root = testFolder(t, { proc: { uptime: '725.32 2800.12\n' } })
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
  writeFileSync(join(root, 'proc/uptime'), '25.32 2800.12\n')
  t.match(sensors.time(), { uptimeMs: 25_320 }, 'LXCFS shows the uptime of the container')
})

/** Files below a root, by their paths. */
function treeOf(t: Test, files: { readonly [path: string]: string }): string {
  const root = testFolder(t)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), `${text}\n`)
  }
  return root
}

test('the answer of the firmware is read where each kernel has it, and words are refused', (t) => {
  const flagsAt = (path: string, text = '5') => machineSensors({ root: treeOf(t, { [path]: text }) }).power()
  const driver = 'sys/bus/platform/drivers/raspberrypi-firmware'
  for (const place of [
    `${driver}/soc:firmware`,
    'sys/devices/platform/soc/soc:firmware',
    'sys/devices/platform/soc@107c000000/soc@107c000000:firmware',
  ]) {
    t.match(flagsAt(`${place}/get_throttled`), { underVoltage: { now: true }, throttling: { now: true } }, place)
    t.match(flagsAt(`${place}/get_throttled`, '0x50005').underVoltage, { now: true, before: true }, place)
    for (const words of ['5 unknown', 'error 5', ''])
      t.equal(flagsAt(`${place}/get_throttled`, words).underVoltage, undefined)
  }
  for (const place of [`${driver}/soc:firmware:clocks`, `sys/devices/platform/xsoc@1/xsoc@1:firmware`]) {
    t.equal(flagsAt(`${place}/get_throttled`).underVoltage, undefined, place)
  }
  t.end()
})

test('an alarm of the supply counts while it is on, and is remembered', (t) => {
  const root = treeOf(t, {
    'sys/class/hwmon/hwmon0/name': 'cpu_thermal',
    'sys/class/hwmon/hwmon0/in0_lcrit_alarm': '0',
    'sys/class/hwmon/hwmon12/name': 'rpi_volt',
    'sys/class/hwmon/hwmon12/in0_lcrit_alarm': '1',
  })
  const sensors = machineSensors({ root })
  t.same(sensors.power().underVoltage, { now: true, before: true })
  writeFileSync(join(root, 'sys/class/hwmon/hwmon12/in0_lcrit_alarm'), '0\n')
  t.same(sensors.power().underVoltage, { now: false, before: true })
  t.same(machineSensors({ root }).power().underVoltage, { now: false, before: false })
  writeFileSync(join(root, 'sys/class/hwmon/hwmon12/in0_lcrit_alarm'), '\n')
  t.equal(machineSensors({ root }).power().underVoltage, undefined, 'a sensor without a value')
  for (const folder of ['xhwmon1', 'hwmon1x', 'hwmonx']) {
    const named = { [`sys/class/hwmon/${folder}/name`]: 'rpi_volt', [`sys/class/hwmon/${folder}/in0_lcrit_alarm`]: '1' }
    t.equal(machineSensors({ root: treeOf(t, named) }).power().underVoltage, undefined, folder)
  }
  t.end()
})

test('throttling of a PC is the sum of its processors, from the second look on', (t) => {
  const count = (cpu: string, of: string) => `sys/devices/system/cpu/${cpu}/thermal_throttle/${of}_throttle_count`
  const root = treeOf(t, {
    [count('cpu0', 'core')]: '0',
    [count('cpu12', 'package')]: '0',
    [count('cpufreq', 'core')]: '7',
    [count('xcpu0', 'core')]: '7',
  })
  const sensors = machineSensors({ root })
  t.same(sensors.power().throttling, { now: false, before: false, by: [] })
  writeFileSync(join(root, count('cpu12', 'package')), '1\n')
  t.same(sensors.power().throttling, { now: true, before: true, by: ['its own thermal monitor'] })
  t.same(sensors.power().throttling, { now: false, before: true, by: [] }, 'the count no longer grows')
  t.same(machineSensors({ root }).power().throttling, { now: false, before: true, by: [] })
  t.equal(machineSensors({ root: testFolder(t) }).power().throttling, undefined)
  t.end()
})

test('cooling devices that slow the processor count, fans and drivers of other things do not', (t) => {
  const device = (name: string, type: string, state?: string) => ({
    [`sys/class/thermal/${name}/type`]: type,
    ...(state !== undefined && { [`sys/class/thermal/${name}/cur_state`]: state }),
  })
  const throttling = (...devices: object[]) =>
    machineSensors({ root: treeOf(t, Object.assign({}, ...devices)) }).power().throttling
  const idle = { now: false, before: false, by: [] }
  t.same(throttling(device('cooling_device0', 'cpufreq-cpu0', '0')), idle)
  t.same(throttling(device('cooling_device0', 'fan', '1'), device('cooling_device12', 'thermal-devfreq-0', '2')), {
    now: true,
    before: true,
    by: ['thermal-devfreq-0'],
  })
  t.same(throttling(device('cooling_device0', 'Processor', '1'))?.by, ['Processor'])
  for (const type of ['fan', 'xProcessor', 'Processors'])
    t.equal(throttling(device('cooling_device0', type, '1')), undefined)
  t.equal(throttling(device('cooling_device0', 'cpufreq-cpu0')), undefined, 'a device without a state')
  for (const name of ['xcooling_device0', 'cooling_device0x']) {
    t.equal(throttling(device(name, 'cpufreq-cpu0', '1')), undefined, name)
  }
  t.end()
})

test('a thermal zone has its limits above freezing, and its folder for a name where it has none', (t) => {
  const zone = (file: string) => `sys/class/thermal/thermal_zone12/${file}`
  const root = treeOf(t, {
    [zone('temp')]: '45500',
    [zone('trip_point_0_temp')]: '80000',
    [zone('trip_point_0_type')]: 'hot',
    [zone('trip_point_12_temp')]: '110000',
    [zone('trip_point_1_temp')]: '0',
    [zone('trip_point_2_temp')]: '-274000',
    [zone('trip_point_3_temp')]: 'none',
    [zone('trip_point_0_temperature')]: '1000',
    [zone('my_trip_point_4_temp')]: '1000',
    'sys/class/thermal/thermal_zone2/type': 'asleep',
    'sys/class/thermal/xthermal_zone3/temp': '1000',
    'sys/class/thermal/thermal_zone3x/temp': '1000',
  })
  t.same(machineSensors({ root }).temperature(), {
    zones: [
      {
        name: 'thermal_zone12',
        celsius: 45.5,
        trips: [
          { kind: 'hot', celsius: 80 },
          { kind: '', celsius: 110 },
        ],
      },
    ],
    board: undefined,
  })
  t.end()
})

test('flash memory is every card and chip, not their partitions', (t) => {
  const device = (name: string) => `sys/block/${name}/device`
  const root = treeOf(t, {
    [`${device('mmcblk12')}/life_time`]: '0x01  0x02 unknown',
    [`${device('mmcblk12')}/pre_eol_info`]: '0x01',
    [`${device('mmcblk0')}/type`]: 'SD',
    [`${device('mmcblk0boot0')}/life_time`]: '0x01',
    [`${device('xmmcblk0')}/life_time`]: '0x01',
  })
  t.same(machineSensors({ root }).flash(), [
    { name: 'mmcblk0', lifeTime: [], preEndOfLife: undefined },
    { name: 'mmcblk12', lifeTime: [1, 2], preEndOfLife: 1 },
  ])
  t.end()
})

test('radio links are those with a level, as drivers write it', (t) => {
  const rows = [
    'Inter-| sta-|   Quality',
    ' wlan0: 0000   26.  -61.  -256  0',
    '  wlp2s0:  0000  60  -50  -256',
    ' wlan9: 0000   0.    0.  0',
  ]
  const root = treeOf(t, { 'proc/net/wireless': rows.join('\n') })
  t.same(machineSensors({ root }).radio(), [
    { name: 'wlan0', signalDbm: -61 },
    { name: 'wlp2s0', signalDbm: -50 },
  ])
  t.end()
})

test('the memory cgroup of version 1 is enabled by its row, that of version 2 by its word', (t) => {
  const enabled = (files: { readonly [path: string]: string }) =>
    machineSensors({ root: treeOf(t, files) }).memoryCgroup()
  const rows = (row: string) => ({
    'proc/cgroups': `#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t10\t1\n${row}\npids\t2\t3\t1`,
  })
  t.same(enabled(rows('memory\t0\t120\t1')), { isEnabled: true, commandLine: '', file: undefined })
  t.match(enabled(rows('memory  12  120  1')), { isEnabled: true })
  for (const row of ['memory\t0\t120\t0', 'hugememory\t0\t120\t1', 'memory\t0\t120\t12', 'memory\t0\t1\t1\t1']) {
    t.match(enabled(rows(row)), { isEnabled: false }, row)
  }
  t.match(enabled({ 'sys/fs/cgroup/cgroup.controllers': 'cpu memory pids', 'proc/cmdline': 'quiet' }), {
    isEnabled: true,
    commandLine: 'quiet',
  })
  t.match(enabled({ 'sys/fs/cgroup/cgroup.controllers': 'cpu pids' }), { isEnabled: false })
  t.equal(enabled({}), undefined)
  t.end()
})

test('a process is stuck in state D, and dockerd is the process of its PID file', (t) => {
  const sensors = machineSensors({
    root: treeOf(t, {
      'run/docker.pid': '812',
      'proc/812/stat': '812 (dockerd) S 1 812',
      'proc/813/stat': '813 (dd) D 1 813',
      'proc/814/stat': '814 (D D) R 1 814',
    }),
  })
  t.equal(sensors.dockerPid(), 812)
  t.same([812, 813, 814, 815].map(sensors.isStuck), [false, true, false, false])
  t.end()
})
