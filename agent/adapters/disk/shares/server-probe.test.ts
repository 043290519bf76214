import { createServer } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { NoAnswer } from '../remote/bounded-child.ts'
import { serverProbe } from './server-probe.ts'

const nas = { server: '10.0.0.5', port: 2049 }
const silent = { name: 'VolumeError', message: '10.0.0.5 does not answer on port 2049' }

test('all volumes of a server that does not answer share one question', async (t) => {
  let calls = 0
  let isBack = false
  const probe = serverProbe(async ({ server, port }) => {
    calls++
    if (!isBack) throw new NoAnswer(`${server} does not answer on port ${port}`)
  }, 1)
  const results = await Promise.allSettled([1, 2, 3, 4, 5].map(() => probe(nas)))
  t.ok(results.every(({ status }) => status === 'rejected'))
  t.ok(calls <= 2, `${calls} connections for five mounts`)
  await t.rejects(probe(nas), silent)
  isBack = true
  for (;;) {
    const found = await probe(nas).then(
      () => true,
      () => false,
    )
    if (found) break
    await setImmediate()
  }
  t.pass('a probe in the background found that it is back')
})

test('a server that takes connections is there; one without the service refuses at once', async (t) => {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') return t.fail()
  const at = { server: '127.0.0.1', port: address.port }
  const probe = serverProbe()
  await probe(at)
  await new Promise((resolve) => server.close(resolve))
  const refuses = { name: 'VolumeError', message: `127.0.0.1 refuses connections on port ${at.port}` }
  await t.rejects(probe(at), refuses)
  await t.rejects(probe(at), refuses, 'each time, as it costs nothing')
})
