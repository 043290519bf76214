import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, t, test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { trustHash } from '../../../certs/ca-hash.ts'
import { issueNode } from '../../../certs/issue.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { certificateManager, type NodeCredentials } from './certificate-manager.ts'

const dayMs = 24 * 3600_000
const folder = mkdtempSync(join(tmpdir(), 'certificate-manager-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const startMs = fakeClock().wallMs()
const first = await openAuthority(join(folder, 'first'), startMs)
const second = await openAuthority(join(folder, 'second'), startMs)

test('a certificate is renewed in the last third of its life, and the new one counts at once', async (t) => {
  const { clock, world, log } = node(t, { lifeMs: 10 * dayMs })
  await clock.advance(6.9 * dayMs)
  t.equal(world.renewals, 0)
  await clock.advance(2.2 * dayMs)
  t.equal(world.renewals, 1)
  t.equal(world.kept.length, 1)
  t.match(log.messages('info'), ['Certificate of this node renewed'])
  await clock.advance(5 * dayMs)
  t.equal(world.renewals, 1, 'it is good for a year now')
})

test('renewal is retried until an unreachable controller answers, also after the certificate has expired', async (t) => {
  const { clock, world, log } = node(t, { lifeMs: dayMs, failures: 4 })
  await clock.advance(dayMs)
  t.equal(world.kept.length, 1)
  t.equal(world.failed, 4, 'each failure is counted')
  t.match(log.messages('warn'), ['Certificate of this node not renewed, trying until it works'])
})

test('new authorities are adopted, and a new signing authority causes a renewal within minutes', async (t) => {
  const { clock, world, manager, credentials } = node(t, { lifeMs: 300 * dayMs })
  await clock.settle()
  world.authorities = `${first.certificate}${second.certificate}`
  manager.trust(trustHash(world.authorities))
  await clock.settle()
  t.equal(credentials().ca, world.authorities)
  await clock.advance(dayMs)
  t.equal(world.renewals, 0, 'the first one still signs')
  world.authorities = `${second.certificate}${first.certificate}`
  world.signer = second
  manager.trust(trustHash(world.authorities))
  await clock.advance(2 * 60_000)
  t.equal(world.renewals, 1)
  world.authorities = second.certificate
  manager.trust(trustHash(world.authorities))
  await clock.advance(dayMs)
  t.equal(credentials().ca, second.certificate)
  t.equal(world.renewals, 1)
})

test('a clock that jumps years ahead causes a renewal, one that starts in 1970 causes none', async (t) => {
  const { clock, world } = node(t, { lifeMs: 300 * dayMs })
  await clock.settle()
  clock.setWall(1000)
  await clock.advance(2 * 3600_000)
  t.equal(world.renewals, 0)
  clock.setWall(startMs + 10 * 365 * dayMs)
  await clock.advance(2 * 3600_000)
  t.ok(world.renewals >= 1)
})

test('a new date is enough to detect that the certificate has expired', async (t) => {
  const { clock, world, manager } = node(t, { lifeMs: 300 * dayMs })
  clock.setWall(1000)
  await clock.settle()
  manager.dateChanged()
  await clock.settle()
  t.equal(world.renewals, 0)
  world.date = startMs + 320 * dayMs
  manager.dateChanged()
  await clock.settle()
  t.equal(world.renewals, 1)
  world.date = startMs + 4000 * dayMs
  manager.dateChanged()
  await clock.settle()
  t.equal(world.renewals, 1, 'not again with each answer')
})

test('a certificate from the future, of a controller whose clock was ahead, is renewed once the date is known', async (t) => {
  const { clock, world, manager } = node(t, { lifeMs: 300 * dayMs })
  await clock.settle()
  world.date = startMs - 10 * dayMs
  manager.dateChanged()
  await clock.settle()
  t.equal(world.renewals, 1)
})

test('on a read-only disk new credentials are used, and saved as soon as it is writable', async (t) => {
  const { clock, world, manager, log, credentials } = node(t, { lifeMs: 10 * dayMs })
  world.isReadOnly = true
  world.authorities = `${first.certificate}${second.certificate}`
  manager.trust(trustHash(world.authorities))
  await clock.advance(10 * dayMs)
  t.equal(credentials().ca, world.authorities)
  t.equal(world.renewals, 1, 'it is requested once')
  t.match(log.messages('warn'), ['New credentials of this node not saved, used until the agent ends'])
  world.isReadOnly = false
  await clock.advance(2 * 3600_000)
  t.same(world.kept, [credentials()])
})

test('a damaged certificate is not renewed', async (t) => {
  const { clock, world } = node(t, { certificate: 'damaged' })
  await clock.advance(dayMs)
  t.equal(world.renewals, 0)
})

function node(t: Test, over: { lifeMs?: number; failures?: number; certificate?: string }) {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const issued = issueNode(first, { nodeName: 'pi-1', nowMs: startMs, lifeMs: over.lifeMs ?? dayMs })
  let credentials: NodeCredentials = {
    ca: first.certificate,
    certificate: over.certificate ?? issued.certificate,
    key: issued.key,
  }
  const world = {
    renewals: 0,
    failed: 0,
    /** In place of the clock. */
    date: undefined as number | undefined,
    kept: [] as NodeCredentials[],
    authorities: first.certificate,
    signer: first as typeof second,
    failures: over.failures ?? 0,
    isReadOnly: false,
  }
  const manager = certificateManager({
    credentials: () => credentials,
    async save(next) {
      if (world.isReadOnly) throw new Error('EROFS')
      world.kept.push(next)
    },
    use(next) {
      credentials = next
    },
    async renew() {
      if (world.failures-- > 0) throw new Error('connect ECONNREFUSED')
      world.renewals++
      return issueNode(world.signer, { nodeName: 'pi-1', nowMs: Math.min(clock.wallMs(), startMs + 3000 * dayMs) })
    },
    authorities: async () => world.authorities,
    renewalFailed: () => void world.failed++,
    nowMs: () => world.date ?? Math.max(clock.wallMs(), startMs),
    clock,
    random: () => 0.5,
    log,
  })
  const stop = new AbortController()
  const running = manager.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  return { clock, log, world, manager, credentials: () => credentials }
}
