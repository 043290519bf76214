import { X509Certificate } from 'node:crypto'
import { test } from 'tap'
import { dayMs } from '../../certs/authority.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { frontProxy } from './front-proxy.ts'

test('a client certificate of the front proxy is used for months, and then made again', async (t) => {
  const clock = fakeClock(Date.UTC(2026, 5, 1))
  const proxy = frontProxy({ dataDir: testFolder(t), clock })
  const first = await proxy.client()
  t.equal(await proxy.client(), first)
  await clock.advance(121 * dayMs)
  const second = await proxy.client()
  t.not(second.certificate, first.certificate)
  const { publicKey } = new X509Certificate((await proxy.authority()).certificate)
  for (const { certificate } of [first, second]) t.ok(new X509Certificate(certificate).verify(publicKey))
  proxy.reload()
  t.not(await proxy.client(), second)
  t.ok(new X509Certificate((await proxy.client()).certificate).verify(publicKey), 'of the same authority')
})
