import { test } from 'tap'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer, aDevice } from '../../testing/builders.ts'
import { chooseDevices, deviceAllocator, deviceCapacity, type MachineDevice, type MachineDevices } from './devices.ts'

const present: MachineDevices = new Map([
  ['bramble.dev/tty', [aDevice('/dev/ttyUSB0'), aDevice('/dev/ttyUSB1')]],
  ['bramble.dev/gpio', [aDevice('/dev/gpiochip0')]],
  ['bramble.dev/video', []],
])

function uses(podUID: string, state: RuntimeContainer['state'], ...paths: string[]): RuntimeContainer {
  const devices = paths.map((path) => ({ source: path, target: path }))
  return aContainer({ id: podUID, identity: { podUID }, state, devices })
}

type World = {
  readonly found?: MachineDevices
  readonly containers?: readonly RuntimeContainer[]
  /** Numbers, by the name of the pod. */
  readonly held?: { readonly [podUID: string]: readonly string[] }
}

const who = { podUID: 'me', containerName: 'main' }

/** The numbers of devices are the paths of their nodes here. */
function chooseIn(
  { found = present, containers = [], held = {} }: World,
  asked: { readonly [resource: string]: number },
): ReturnType<typeof chooseDevices> {
  const files = [...found.values()].flat().flatMap((device) => device.files)
  return chooseDevices(
    Object.entries(asked).map(([name, count]) => [`bramble.dev/${name}`, count]),
    found,
    {
      who,
      containers,
      numbers: new Map(files.map(({ source, number }) => [source, number])),
      held: new Map(Object.entries(held).map(([podUID, numbers]) => [`${podUID}/main`, new Set(numbers)])),
    },
  )
}

function targetsIn(world: World, asked: { readonly [resource: string]: number }): readonly string[] | string {
  const choice = chooseIn(world, asked)
  return choice.ok ? choice.devices.map(({ target }) => target) : choice.message
}

test('a device is one container’s at a time', async (t) => {
  const containers = [uses('other', 'running', '/dev/ttyUSB0')]
  t.same(targetsIn({}, { tty: 1 }), ['/dev/ttyUSB0'])
  t.same(targetsIn({ containers }, { tty: 1, gpio: 1 }), ['/dev/ttyUSB1', '/dev/gpiochip0'])
  t.equal(targetsIn({ containers }, { tty: 2 }), '2 of bramble.dev/tty requested, 2 on this machine, 1 free')
  t.match(targetsIn({ held: { other: ['/dev/ttyUSB1'] } }, { tty: 2 }), /1 free/)
  t.same(targetsIn({ containers: [uses('other', 'exited', '/dev/ttyUSB0')] }, { tty: 2 }).length, 2)
  t.match(targetsIn({}, { video: 1 }), /0 on this machine/)
  t.match(targetsIn({}, { none: 1 }), /declares none/)
})

test('a container keeps its device over restarts', async (t) => {
  t.same(targetsIn({ containers: [uses('me', 'exited', '/dev/ttyUSB1')] }, { tty: 1 }), ['/dev/ttyUSB1'])
})

test('a container keeps the device of a link that a reboot has given another number', async (t) => {
  const link = (name: string, number: string): MachineDevice => ({
    files: [{ number, source: number, target: `/dev/serial/by-id/${name}` }],
    shared: 1,
  })
  const found = new Map([['bramble.dev/sticks', [link('a', '/dev/ttyUSB0'), link('b', '/dev/ttyUSB1')]]])
  const devices = [{ source: '/dev/ttyUSB0', target: '/dev/serial/by-id/b' }]
  const before = aContainer({ identity: { podUID: 'me' }, state: 'exited', devices })
  t.same(targetsIn({ found, containers: [before] }, { sticks: 1 }), ['/dev/serial/by-id/b'])
})

const stick = { number: '/dev/s0' }
const twice: MachineDevices = new Map([
  ['bramble.dev/two', [aDevice('/dev/by-id', stick), aDevice('/dev/s0'), aDevice('/dev/s1')]],
  ['bramble.dev/stick', [aDevice('/dev/by-id', stick)]],
  ['bramble.dev/same', [aDevice('/dev/s0')]],
])

test('capacity counts the devices of each resource, not their paths', async (t) => {
  t.same(deviceCapacity(twice), { 'bramble.dev/two': 2, 'bramble.dev/stick': 1, 'bramble.dev/same': 1 })
})

test('a device with a link to it is given once, also by two resources', async (t) => {
  for (const path of ['/dev/by-id', '/dev/s0']) {
    const containers = [uses('other', 'running', path)]
    t.same(targetsIn({ found: twice, containers }, { two: 1 }), ['/dev/s1'])
    t.match(targetsIn({ found: twice, containers }, { stick: 1 }), /1 on this machine, 0 free/)
    t.match(targetsIn({ found: twice, containers }, { same: 1 }), /1 on this machine, 0 free/)
  }
  t.match(targetsIn({ found: twice, held: { other: ['/dev/s0'] } }, { same: 1 }), /0 free/, 'held for another')
  t.match(targetsIn({ found: twice }, { stick: 1, same: 1 }), /0 free/, 'within one container')
})

const tun = aDevice('/dev/net/tun', { shared: 2 })

test('a shared device is given to as many containers at a time as declared', async (t) => {
  const found = new Map([['bramble.dev/tun', [tun]]])
  t.same(deviceCapacity(found), { 'bramble.dev/tun': 2 })
  const one = uses('one', 'running', '/dev/net/tun')
  t.same(targetsIn({ found, containers: [one] }, { tun: 1 }), ['/dev/net/tun'])
  t.same(targetsIn({ found, containers: [one], held: { one: ['/dev/net/tun'] } }, { tun: 1 }).length, 1, 'counted once')
  const containers = [one, uses('two', 'running', '/dev/net/tun')]
  t.equal(targetsIn({ found, containers }, { tun: 1 }), '1 of bramble.dev/tun requested, 2 on this machine, 0 free')
  t.match(targetsIn({ found, containers: [one], held: { two: ['/dev/net/tun'] } }, { tun: 1 }), /0 free/)
  t.same(targetsIn({ found }, { tun: 2 }), ['/dev/net/tun'], 'two shares of one device are one device')
})

test('of shared devices a container gets different ones, those with the fewest users first', async (t) => {
  const shared = { shared: 3 }
  const found = new Map([['bramble.dev/tun', [aDevice('/dev/a', shared), aDevice('/dev/b', shared)]]])
  t.same(targetsIn({ found }, { tun: 2 }), ['/dev/a', '/dev/b'])
  t.same(targetsIn({ found, containers: [uses('other', 'running', '/dev/a')] }, { tun: 1 }), ['/dev/b'])
})

test('a device that only one of two resources shares is not shared', async (t) => {
  const found = new Map([
    ['bramble.dev/tun', [tun]],
    ['bramble.dev/own', [aDevice('/dev/net/tun')]],
  ])
  t.same(deviceCapacity(found), { 'bramble.dev/tun': 1, 'bramble.dev/own': 1 })
  t.match(targetsIn({ found, containers: [uses('other', 'running', '/dev/net/tun')] }, { tun: 1 }), /0 free/)
})

test('a group is given as a whole, and only while each of its devices is free', async (t) => {
  const gpu = (shared: number): MachineDevice => ({
    files: ['/dev/dri/card0', '/dev/dri/renderD128'].flatMap((path) => aDevice(path).files),
    shared,
  })
  const found = new Map([
    ['bramble.dev/gpu', [gpu(2), aDevice('/dev/dri/card0', { shared: 2 })]],
    ['bramble.dev/render', [aDevice('/dev/dri/renderD128', { shared: 2 })]],
  ])
  t.same(deviceCapacity(found), { 'bramble.dev/gpu': 2, 'bramble.dev/render': 2 })
  t.same(targetsIn({ found }, { gpu: 1 }), ['/dev/dri/card0', '/dev/dri/renderD128'])
  const render = ['a', 'b'].map((podUID) => uses(podUID, 'running', '/dev/dri/renderD128'))
  t.match(targetsIn({ found, containers: render }, { gpu: 1 }), /2 on this machine, 0 free/)
})

test('two devices that would have one path in the container are refused, with the remedy', async (t) => {
  const at = (source: string): MachineDevice => ({
    files: [{ number: source, source, target: '/dev/modem' }],
    shared: 1,
  })
  const found = new Map([['bramble.dev/modem', [at('/dev/ttyUSB0'), at('/dev/ttyUSB1')]]])
  t.match(chooseIn({ found }, { modem: 1 }), { devices: [{ source: '/dev/ttyUSB0', target: '/dev/modem' }] })
  t.equal(
    targetsIn({ found }, { modem: 2 }),
    "/dev/ttyUSB0 and /dev/ttyUSB1 would both be /dev/modem in the container: request one of them, or give them different paths in `devices` of the agent's configuration",
  )
})

type Fleet = { readonly found?: MachineDevices; readonly containers?: () => Promise<readonly RuntimeContainer[]> }

function allocatorIn({ found = present, containers = async () => [] }: Fleet) {
  const numbers = new Map([...found.values()].flat().flatMap(({ files }) => files.map((f) => [f.source, f.number])))
  const { allocate, release } = deviceAllocator({
    devices: { list: async () => found, numberOf: async (path) => numbers.get(path) },
    runtime: { listContainers: containers },
  })
  return {
    release: (podUID: string) => release({ podUID, containerName: 'main' }),
    asking: (podUID: string, limits?: { readonly [resource: string]: string }, requests = {}) =>
      allocate({ podUID, containerName: 'main' }, { name: 'main', ...(limits && { resources: { limits, requests } }) }),
  }
}

const gpio = { 'bramble.dev/gpio': '1' }
const gpioGiven = { ok: true, devices: [{ source: '/dev/gpiochip0', target: '/dev/gpiochip0' }] }
const gpioRefused = { ok: false, message: '1 of bramble.dev/gpio requested, 1 on this machine, 0 free' }

test('devices are held from their allocation until the container shows that it uses them', async (t) => {
  let listed = 0
  const { asking, release } = allocatorIn({
    containers: async () => {
      listed++
      return []
    },
  })
  t.same(await asking('a'), { ok: true, devices: [] })
  t.same(await asking('a', { cpu: '2', 'bramble.dev/tty': '0' }), { ok: true, devices: [] })
  t.equal(listed, 0, 'nothing is read for a container without devices')
  t.same(await asking('a', gpio), gpioGiven)
  t.same(await asking('a', gpio), gpioGiven, 'asked again before it was made')
  t.same(await asking('b', gpio), gpioRefused)
  release('b')
  t.same(await asking('c', gpio), gpioRefused, 'one that was refused holds nothing, and releases nothing')
  release('a')
  t.same(await asking('b', {}, gpio), gpioGiven)
})

test('a device is not given again while a list of containers from before its release is used', async (t) => {
  let answer = (_: readonly RuntimeContainer[]) => {}
  let isSlow = false
  const { asking, release } = allocatorIn({
    containers: () => (isSlow ? new Promise((resolve) => (answer = resolve)) : Promise.resolve([])),
  })
  t.same(await asking('a', gpio), gpioGiven)
  isSlow = true
  const late = asking('b', gpio)
  release('a')
  answer([])
  t.same(await late, gpioRefused)
})

test('a restarted agent recognizes the devices of running containers by their numbers', async (t) => {
  for (const path of ['/dev/by-id', '/dev/s0']) {
    const { asking } = allocatorIn({ found: twice, containers: async () => [uses('running', 'running', path)] })
    t.match(await asking('new', { 'bramble.dev/stick': '1' }), { ok: false, message: /0 free/ })
    t.match(await asking('new', { 'bramble.dev/two': '1' }), { ok: true, devices: [{ source: '/dev/s1' }] })
  }
})
