import { test } from 'tap'
import { aContainer } from '../../testing/builders.ts'
import type { RuntimeContainer } from '../runtime/runtime.ts'
import { chooseDevices } from './devices.ts'

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
