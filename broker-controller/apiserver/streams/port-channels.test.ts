import { test } from 'tap'
import { forwardedPorts } from './port-channels.ts'

const read = (text: string) => forwardedPorts(new URLSearchParams(text))

test('the query names the ports, each by itself or with commas between them', async (t) => {
  t.same(read('ports=8080'), [8080])
  t.same(read('ports=1&ports=65535,80'), [1, 65_535, 80])
  t.equal(read(`ports=${Array(128).fill('80').join(',')}`).length, 128)
})

test('a query without a valid port is refused', async (t) => {
  t.throws(() => read(''), { reason: 'BadRequest', message: 'query parameter "ports" is required' })
  t.throws(() => read(`ports=${Array(129).fill('80').join(',')}`), {
    message: 'at most 128 ports can be forwarded together',
  })
  for (const port of ['', '0', '65536', '-1', '1e3', '80.5', ' 80', '000080', 'http']) {
    const message = `unable to parse ${JSON.stringify(port)} as a port: it must be 1 to 65535`
    t.throws(() => read(`ports=${encodeURIComponent(port)}`), { reason: 'BadRequest', message })
  }
})
