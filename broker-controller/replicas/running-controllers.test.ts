import { createServer } from 'node:net'
import { test } from 'tap'
import { runningControllers } from './running-controllers.ts'

test('a controller runs whose API accepts a connection', async (t) => {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const open = `https://127.0.0.1:${port}`
  const closed = createServer()
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const other = closed.address()
  const gone = `https://127.0.0.1:${typeof other === 'object' ? other?.port : undefined}`
  await new Promise((resolve) => closed.close(resolve))
  t.same(await runningControllers([gone, open, 'https://none.invalid:6443']), [open])
  t.same(await runningControllers([]), [])
  await new Promise((resolve) => server.close(resolve))
})
