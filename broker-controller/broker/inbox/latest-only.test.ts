import { test } from 'tap'
import { latestOnly } from './latest-only.ts'

test('only the latest waiting work runs, one at a time', async (t) => {
  const queue = latestOnly()
  const done: string[] = []
  let release = () => {}
  const first = queue.run('key', async () => {
    await new Promise<void>((resolve) => {
      release = resolve
    })
    done.push('first')
  })
  const waiting = ['second', 'third', 'fourth'].map((name) => queue.run('key', async () => void done.push(name)))
  await queue.run('other', async () => void done.push('other'))
  release()
  await Promise.all([first, ...waiting])
  t.same(done, ['other', 'first', 'fourth'])
  await t.rejects(
    queue.run('key', () => Promise.reject(new Error('failed'))),
    { message: 'failed' },
  )
  await queue.run('key', async () => void done.push('again'))
  t.equal(done.at(-1), 'again')
})

test('work that arrives just as other work ends does not overtake waiting work', async (t) => {
  const queue = latestOnly()
  const done: string[] = []
  const late: Promise<void>[] = []
  const endsLater = async (name: string) => {
    await Promise.resolve()
    done.push(name)
  }
  const first = queue.run('key', async () => {
    // A few turns on the first is over, and what waits has not begun.
    void Promise.resolve()
      .then(() => undefined)
      .then(() => late.push(queue.run('key', () => endsLater('newest'))))
  })
  const waiting = queue.run('key', () => endsLater('waited'))
  await Promise.all([first, waiting])
  await Promise.all(late)
  t.equal(done.at(-1), 'newest')
})
