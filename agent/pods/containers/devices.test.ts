import { test } from 'tap'
import { aContainer } from '../../testing/builders.ts'
import type { RuntimeContainer } from '../runtime/runtime.ts'
import { chooseDevices, deviceAllocator } from './devices.ts'

const present = new Map([
  ['bramble.dev/tty', ['/dev/ttyUSB0', '/dev/ttyUSB1']],
  ['bramble.dev/gpio', ['/dev/gpiochip0']],
  ['bramble.dev/video', []],
])

function uses(podUID: string, state: RuntimeContainer['state'], ...devices: string[]): RuntimeContainer {
  return aContainer({ id: podUID, identity: { podUID }, state, devices })
}

const choose = (asked: [string, number][], containers: RuntimeContainer[] = [], held: string[] = []) =>
  chooseDevices(asked, present, { who: { podUID: 'me', containerName: 'main' }, containers, held })

test('a device is one container’s at a time', async (t) => {
  t.same(choose([['bramble.dev/tty', 1]]), { ok: true, paths: ['/dev/ttyUSB0'] })
  const other = uses('other', 'running', '/dev/ttyUSB0')
  t.same(
    choose(
      [
        ['bramble.dev/tty', 1],
        ['bramble.dev/gpio', 1],
      ],
      [other],
    ),
    {
      ok: true,
      paths: ['/dev/ttyUSB1', '/dev/gpiochip0'],
    },
  )
  t.match(choose([['bramble.dev/tty', 2]], [other]), {
    ok: false,
    message: /2 of bramble.dev\/tty asked for, 2 on this machine, 1 free/,
  })
  t.match(choose([['bramble.dev/tty', 2]], [], ['/dev/ttyUSB1']), { ok: false })
  t.match(choose([['bramble.dev/tty', 2]], [uses('other', 'exited', '/dev/ttyUSB0')]), { ok: true })
  t.match(choose([['bramble.dev/video', 1]]), { ok: false, message: /0 on this machine/ })
  t.match(choose([['bramble.dev/none', 1]]), { ok: false, message: /declares none/ })
})

test('a container keeps its device over restarts', async (t) => {
  t.same(choose([['bramble.dev/tty', 1]], [uses('me', 'exited', '/dev/ttyUSB1')]), {
    ok: true,
    paths: ['/dev/ttyUSB1'],
  })
})

test('devices are held from their allocation until the container shows that it uses them', async (t) => {
  let listed = 0
  const { allocate, release } = deviceAllocator({
    devices: async () => present,
    runtime: {
      listContainers: async () => {
        listed++
        return []
      },
    },
  })
  const asking = (podUID: string, limits?: { readonly [resource: string]: string }, requests = {}) =>
    allocate({ podUID, containerName: 'main' }, { name: 'main', ...(limits && { resources: { limits, requests } }) })
  t.same(await asking('a'), { ok: true, paths: [] })
  t.same(await asking('a', { cpu: '2', 'bramble.dev/tty': '0' }), { ok: true, paths: [] })
  t.equal(listed, 0, 'nothing is read for a container without devices')
  const gpio = { 'bramble.dev/gpio': '1' }
  t.same(await asking('a', gpio), { ok: true, paths: ['/dev/gpiochip0'] })
  t.same(await asking('a', gpio), { ok: true, paths: ['/dev/gpiochip0'] }, 'asked again before it was made')
  const refused = { ok: false, message: '1 of bramble.dev/gpio asked for, 1 on this machine, 0 free' }
  t.same(await asking('b', gpio), refused)
  release({ podUID: 'b', containerName: 'main' })
  t.same(await asking('c', gpio), refused, 'one that was refused holds nothing, and releases nothing')
  release({ podUID: 'a', containerName: 'main' })
  t.same(await asking('b', {}, gpio), { ok: true, paths: ['/dev/gpiochip0'] })
})
