import { type Test, test } from 'tap'
import type { Clock } from '../../../../daemon/clock.ts'
import { metricsText } from '../../../../daemon/prometheus-text.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { noEtcd as skip } from '../../../../test/support/etcd.ts'
import { compactMethod, etcdUnderTest, rawClient } from '../../../testing/etcd-under-test.ts'
import type { EtcdClient } from '../etcd-client.ts'
import { EtcdError, grpcCode } from '../etcd-error.ts'
import { type Method, methods } from '../etcd-messages.ts'
import { etcdUpkeep } from './etcd-upkeep.ts'

const mebibyte = 2 ** 20
const hourMs = 3_600_000
const quotaBytes = 64 * mebibyte
const { url } = await etcdUnderTest('--quota-backend-bytes', String(quotaBytes))
const keys = { owner: Buffer.from('/upkeep/owner') }

type Answers = {
  /** What Status answers, in place of etcd. */
  status?: { allocated: number; used: number; quota: number; revision: number } | EtcdError
  /** The first revision that can be read. */
  compacted?: number
}

function fakeClient(answers: Answers): Pick<EtcdClient, 'call'> {
  return {
    async call<Out, In>({ path, answer }: Method<Out, In>, request: In): Promise<Out> {
      const none = answer.decode(Buffer.alloc(0))
      const { revision = 0 } = request as { revision?: number }
      if (path !== methods.status.path) {
        if (revision >= (answers.compacted ?? 0)) return none
        throw new EtcdError(grpcCode.outOfRange, 'required revision has been compacted')
      }
      if (answers.status instanceof Error) throw answers.status
      return { ...none, ...answers.status, header: { revision: answers.status?.revision ?? 0 } }
    },
  }
}

/** `look`: time passes, and etcd is read once. */
async function running(t: Test, client: Pick<EtcdClient, 'call'>, quota?: number) {
  let nowMs = 0
  let wake = (): void => undefined
  let sleeps = (): void => undefined
  const asleep = () => new Promise<void>((resolve) => (sleeps = resolve))
  const clock: Pick<Clock, 'monotonicMs' | 'sleep'> = {
    monotonicMs: () => nowMs,
    sleep: (_, signal) =>
      new Promise((resolve) => {
        wake = () => {
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        signal?.addEventListener('abort', wake, { once: true })
        sleeps()
      }),
  }
  const log = quietLog(t)
  const upkeep = etcdUpkeep({ client, keys, ...(quota !== undefined && { quotaBytes: quota }), clock, log })
  const stop = new AbortController()
  const first = asleep()
  const ended = upkeep.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await ended
  })
  await first
  return {
    ...{ log, warnings: upkeep.warnings, metrics: () => [...metricsText(upkeep.metrics())].join('') },
    async look(afterMs = 60_000) {
      nowMs += afterMs
      const next = asleep()
      wake()
      await next
    },
  }
}

test('a real etcd: its size is a metric, and near its quota there is a warning, until it is defragmented', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const { look, warnings, metrics, log } = await running(t, client, quotaBytes)
  t.same(warnings(), [])
  t.match(metrics(), /^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} [1-9]\d+$/m)
  t.match(metrics(), /^bramble_etcd_database_used_bytes [1-9]\d+$/m)
  t.match(metrics(), /^bramble_etcd_database_quota_bytes 67108864$/m)
  t.match(metrics(), /^bramble_etcd_warning\{reason="Space"\} 0$/m)
  const put = (value: Buffer) =>
    client.call(methods.txn, { success: [{ put: { key: Buffer.from('/upkeep/a'), value } }] })
  let latest = 0
  for (let i = 0; i < 200 && warnings().length === 0; i++) {
    latest = (await put(Buffer.alloc(mebibyte / 2, 'x'))).header?.revision ?? 0
    await look()
  }
  await look()
  t.match(warnings(), [/^the database of etcd has [56]\d MiB of its quota of 64 MiB.* Compact and defragment it/])
  t.match(metrics(), /^bramble_etcd_warning\{reason="Space"\} 1$/m)
  t.same(log.messages('warn'), ['etcd needs attention'], 'it is logged once')
  await client.call(compactMethod, { revision: latest })
  const defragment: Method<object, object> = { ...methods.status, path: '/etcdserverpb.Maintenance/Defragment' }
  await client.call(defragment, {})
  await look()
  t.same(warnings(), [])
  t.same(log.messages('info'), ['etcd no longer needs attention'])
})

test('a real etcd: a revision that is not compacted gets a warning, until it is compacted', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const client = await rawClient(url)
  t.teardown(() => client.close())
  let more = 0
  const call: EtcdClient['call'] = async (method, request) => {
    const answer = await client.call(method, request)
    const { header } = answer as { header?: { revision: number } }
    return method.path === methods.status.path && header
      ? { ...answer, header: { revision: header.revision + more } }
      : answer
  }
  const put = () => client.call(methods.txn, { success: [{ put: { key: keys.owner, value: Buffer.from('a') } }] })
  await put()
  const { look, warnings } = await running(t, { call })
  await put()
  await look(2 * hourMs)
  t.same(warnings(), [], 'there are few revisions')
  more = 20_000
  await look()
  t.match(warnings(), [/^etcd keeps all 2000\d revisions of the last 2 h.*--auto-compaction-mode=periodic/])
  await client.call(compactMethod, { revision: (await put()).header?.revision ?? 0 })
  await look()
  t.same(warnings(), [])
})

test('the quota that etcd names goes before the configured one, and that before the default of 2 GiB', async (t) => {
  const status = { allocated: 90 * mebibyte, used: 90 * mebibyte, quota: 100 * mebibyte, revision: 1 }
  t.match((await running(t, fakeClient({ status }), 200 * mebibyte)).warnings(), [/quota of 100 MiB/])
  const unnamed = fakeClient({ status: { ...status, quota: 0 } })
  t.match((await running(t, unnamed, 80 * mebibyte)).warnings(), [/quota of 80 MiB/])
  const usual = await running(t, unnamed)
  t.same(usual.warnings(), [])
  t.match(usual.metrics(), /^bramble_etcd_database_quota_bytes 2147483648$/m)
})

test('each mark is two hours old when etcd is asked for it; one of before a restored snapshot is forgotten', async (t) => {
  const status = { allocated: 1, used: 1, quota: 100, revision: 50_000 }
  const answers: Answers = { status, compacted: 0 }
  const { look, warnings } = await running(t, fakeClient(answers))
  status.revision = 100
  await look(3 * hourMs)
  t.same(warnings(), [], 'a lower revision begins a new mark')
  status.revision = 20_000
  await look(2 * hourMs - 1)
  t.same(warnings(), [])
  answers.compacted = 19_000
  await look(1)
  t.same(warnings(), [], 'the mark was compacted')
  status.revision = 40_000
  await look(2 * hourMs)
  t.match(warnings(), [/all 20000 revisions/], 'the mark that followed was not')
})

test('an etcd that is away has no size; one that refuses to name it is logged once', async (t) => {
  const status = { allocated: 95, used: 95, quota: 100, revision: 1 }
  const answers: Answers = { status }
  const { look, warnings, metrics, log } = await running(t, fakeClient(answers))
  answers.status = new EtcdError(grpcCode.unavailable, 'no connection')
  await look()
  t.notMatch(metrics(), /apiserver_storage_size_bytes/)
  t.equal(warnings().length, 1, 'the warning holds until etcd shows that it does not')
  t.same(log.messages('warn'), ['etcd needs attention'], 'readiness reports that it is away')
  answers.status = status
  await look()
  answers.status = new EtcdError(grpcCode.permissionDenied, 'permission denied')
  await look()
  await look()
  t.same(log.messages('warn'), ['etcd needs attention', 'Cannot read the size of the database of etcd'])
})
