import { test } from 'tap'
import { anApi } from '../../testing/api-in-memory.ts'
import { isSwitchedOn, refuseWrongTimeout } from './query.ts'

test('a parameter is true unless it is missing, 0 or false', async (t) => {
  const read = (text: string) => isSwitchedOn(new URLSearchParams(text), 'watch')
  for (const text of ['watch', 'watch=', 'watch=1', 'watch=true', 'watch=True', 'watch=00', 'watch=no'])
    t.ok(read(text), text)
  for (const text of ['', 'other=1', 'watch=0', 'watch=false', 'watch=False', 'watch=FALSE']) t.notOk(read(text), text)
})

test('an invalid timeout is refused in the words of Kubernetes', async (t) => {
  const refusal = (text: string) => {
    try {
      refuseWrongTimeout(new URLSearchParams({ timeout: text }))
      return undefined
    } catch (error) {
      return String(error)
    }
  }
  for (const text of ['', '32s', '1m30s', '-5s', '0', '1.5h']) t.equal(refusal(text), undefined, text)
  t.match(refusal('invalid'), /invalid timeout specified in the request URL - time: invalid duration "invalid"/)
  t.match(refusal('5'), /time: missing unit in duration "5"/)
  t.match(refusal('1d'), /time: unknown unit "d" in duration "1d"/)
  const { ask } = await anApi(t)
  t.match(await ask('GET', '/api/v1/namespaces?timeout=invalid'), { code: 400, body: { reason: 'BadRequest' } })
  t.match(await ask('GET', '/api/v1/namespaces?timeout=32s'), { code: 200 })
})
