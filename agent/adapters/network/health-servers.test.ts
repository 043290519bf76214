import { test } from 'tap'
import { freePort } from '../../testing/free-port.ts'
import { healthServers } from './health-servers.ts'

test('any request is answered at once, until the port is closed', async (t) => {
  const port = await freePort()
  const servers = healthServers('127.0.0.1')
  t.teardown(() => servers.close(port))
  await servers.open(port, () => ({ status: 503, headers: { 'X-Load-Balancing-Endpoint-Weight': '0' }, body: '{}' }))
  const answer = await fetch(`http://127.0.0.1:${port}/any/path`, { method: 'POST', body: 'x' })
  t.equal(answer.status, 503)
  t.equal(answer.headers.get('x-load-balancing-endpoint-weight'), '0')
  t.equal(await answer.text(), '{}')
  await t.rejects(
    servers.open(port, () => ({ status: 200, headers: {}, body: '' })),
    {
      message: `Cannot listen on port ${port}`,
    },
  )
  await servers.close(port)
  await t.rejects(fetch(`http://127.0.0.1:${port}/`))
  await servers.close(port)
})
