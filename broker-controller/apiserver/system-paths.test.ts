import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { builtInKinds } from '../control-plane.ts'
import { memoryStore } from '../store/memory-store.ts'
import { checkWithin, type ReadinessCheck, type SystemNeeds, systemAnswer } from './system-paths.ts'

const get = (path: string, readiness: readonly ReadinessCheck[] = []) => {
  const [at = '', query = ''] = path.split('?')
  const needs: SystemNeeds = {
    version: '0.1.0',
    store: memoryStore({ clock: fakeClock() }),
    metrics: async () => ({ text: '', contentType: 'text/plain' }),
    readiness,
    kinds: builtInKinds,
  }
  return systemAnswer({ verb: 'get', path: at, query: new URLSearchParams(query), accept: undefined }, needs)
}

test('readyz is ok when every check passes; until then it lists each check', async (t) => {
  const well: ReadinessCheck = { name: 'store', check: async () => undefined }
  const broken: ReadinessCheck = { name: 'broker', check: () => Promise.reject(new Error('the port is not open yet')) }
  t.match(await get('/readyz', [well]), { code: 200, text: 'ok' })
  t.match(await get('/readyz', [well, broken]), {
    code: 500,
    text: '[+]ping ok\n[+]store ok\n[-]broker failed: the port is not open yet\nreadyz check failed\n',
  })
  t.match(await get('/livez', [broken]), { code: 200 }, 'not being ready is no reason to be restarted')
})

test('one check by its path, and all but those that the query excludes', async (t) => {
  const broken: ReadinessCheck = { name: 'broker', check: () => Promise.reject(new Error('the port is not open yet')) }
  t.match(await get('/readyz/ping', [broken]), { code: 200, text: 'ok' })
  t.match(await get('/readyz/broker', [broken]), { code: 500, text: /^\[-\]broker failed/ })
  t.match(await get('/readyz?exclude=broker', [broken]), { code: 200, text: 'ok' })
  await t.rejects(get('/readyz/store', [broken]), { code: 404 })
  t.match(await get('/healthz/ping'), { code: 200, text: 'ok' })
})

test('a check that does not answer in time has failed', async (t) => {
  const clock = fakeClock()
  const asked = get('/readyz', [checkWithin('store', () => new Promise(() => undefined), clock, 2000)])
  await clock.advance(2000)
  t.match(await asked, { code: 500, text: /\[-\]store failed: no answer within 2 s/ })
})
