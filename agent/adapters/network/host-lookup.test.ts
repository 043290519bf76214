import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { hostLookup } from './host-lookup.ts'

/** A resolver that answers when it is asked to. */
function slowResolver() {
  const asked: string[] = []
  const answers: ((address: string | undefined) => void)[] = []
  const find = (name: string) => {
    asked.push(name)
    return new Promise<string | undefined>((resolve) => answers.push(resolve))
  }
  return { asked, find, answer: (address: string | undefined) => answers.shift()?.(address) }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('one name is looked up at a time, and each of them once', async (t) => {
  const { asked, find, answer } = slowResolver()
  const resolve = hostLookup(find)
  const found = [resolve('a.example'), resolve('b.example'), resolve('a.example')]
  await turn()
  t.same(asked, ['a.example'])
  answer('192.0.2.1')
  await turn()
  t.same(asked, ['a.example', 'b.example'])
  answer(undefined)
  t.same(await Promise.all(found), ['192.0.2.1', undefined, '192.0.2.1'])
  const again = resolve('a.example')
  await turn()
  answer('192.0.2.9')
  t.equal(await again, '192.0.2.9', 'an answer is not kept')
})

test('a name that is not asked for any more is not looked up, and an answer that is late is not lost', async (t) => {
  const { asked, find, answer } = slowResolver()
  const clock = fakeClock()
  const resolve = hostLookup(find, clock)
  const first = [resolve('slow.example'), resolve('gone.example')]
  await clock.advance(10_000)
  const second = resolve('slow.example')
  await clock.advance(55_000)
  t.same(await Promise.all([...first, second]), [undefined, undefined, undefined])
  answer('192.0.2.1')
  await clock.settle()
  t.equal(await resolve('slow.example'), '192.0.2.1')
  t.same(asked, ['slow.example'])
})

test('a name that cannot be looked up has no address', async (t) => {
  const resolve = hostLookup(() => Promise.reject(new Error('EAI_AGAIN')))
  t.equal(await resolve('a.example'), undefined)
})
