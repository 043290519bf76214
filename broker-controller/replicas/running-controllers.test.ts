import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { nextTick } from 'node:process'
import { type Test, test } from 'tap'
import { standStill } from '../../daemon/testing/stand-still.ts'
import { runningControllers } from './running-controllers.ts'

test('a controller runs whose API accepts a connection', async (t) => {
  const open = await listening(t)
  t.same(await runningControllers(['https://127.0.0.1:1', open, 'https://none.invalid:6443']), [open])
  t.same(await runningControllers([]), [])
})

test('a controller that accepts while this machine stands still runs', async (t) => {
  const open = await listening(t)
  const running = runningControllers([open])
  nextTick(() => standStill(1_500))
  t.same(await running, [open])
})

async function listening(t: Test): Promise<string> {
  const server = createServer((socket) => socket.destroy())
  t.teardown(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}
