import { test } from 'tap'
import { contentsReport } from './contents-report.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

function reports() {
  let held: readonly string[] | undefined = ['a']
  const report = contentsReport('topic', () => held)
  const aLink = () => {
    const bodies: string[] = []
    const answers: (() => void)[] = []
    return {
      bodies,
      acknowledge: async () => {
        answers.shift()?.()
        await settled()
      },
      abandoned: [] as Error[],
      publish(_topic: string, body: string) {
        bodies.push(body)
        return new Promise<void>((resolve) => answers.push(resolve))
      },
      abandon(error: Error) {
        this.abandoned.push(error)
      },
    }
  }
  return {
    report,
    aLink,
    hold(names: readonly string[] | undefined) {
      held = names
    },
  }
}

test('what is held is published once on each connection to a controller that reads it', async (t) => {
  const { report, aLink } = reports()
  const earlier = aLink()
  report.opened(earlier)
  report.received({})
  report.publish()
  t.same(earlier.bodies, [], 'an earlier controller does not have the topic')
  const one = aLink()
  report.opened(one)
  report.received({ contents: true })
  report.received({ contents: true })
  t.same(one.bodies, ['{"names":["a"]}'])
  report.closed()
  report.publish()
  const other = aLink()
  report.opened(other)
  t.same(other.bodies, [], 'it has not announced itself yet')
  report.received({ contents: true })
  t.equal(other.bodies.length, 1)
})

test('nothing is published before the checkpoint is read', async (t) => {
  const { report, aLink, hold } = reports()
  const on = aLink()
  hold(undefined)
  report.opened(on)
  report.received({ contents: true })
  t.same(on.bodies, [])
  hold(['a', 'b'])
  report.publish()
  t.same(on.bodies, ['{"names":["a","b"]}'])
})

test('one report is under way at a time, and the next one has what is held then', async (t) => {
  const { report, aLink, hold } = reports()
  const on = aLink()
  report.opened(on)
  report.received({ contents: true })
  hold(['b'])
  report.publish()
  report.publish()
  t.equal(on.bodies.length, 1)
  await on.acknowledge()
  t.same(on.bodies, ['{"names":["a"]}', '{"names":["b"]}'])
  await on.acknowledge()
  t.equal(on.bodies.length, 2)
})

test('a connection that does not take the report is ended', async (t) => {
  const { report, aLink } = reports()
  const on = Object.assign(aLink(), { publish: () => Promise.reject(new Error('no answer')) })
  report.opened(on)
  report.received({ contents: true })
  await settled()
  t.match(on.abandoned, [{ message: 'no answer' }])
})
