/** The authority is replaced while several controllers run, and not all of them get its files. */
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { rolloverIn } from '../certs/rollover.ts'
import { noEtcd } from './support/etcd.ts'
import type { Controller } from './support/fleet.ts'
import { startReplicas } from './support/replicas.ts'

test('two fail-overs after a change-over: no controller signs with the previous authority', {
  skip: noEtcd,
  timeout: 180_000,
}, async (t) => {
  const { controllers, places, start } = await startReplicas(t, { count: 3 })
  const [a, b, c] = controllers
  if (a === undefined || b === undefined || c === undefined) throw new Error('There are three controllers')
  const [ofA, ofB] = places.map(({ dataDir }) => join(dataDir, 'authority'))
  if (ofA === undefined || ofB === undefined) throw new Error('There are three folders')
  const rollover = ({ command, dataDir }: Controller, step: string) =>
    command('certificates', 'rollover', step, '--data-dir', dataDir)
  const published = (through: Controller) =>
    through.kubectl('-n', 'kube-public', 'get', 'configmap', 'cluster-info', '-o', 'jsonpath={.data.caHash}')

  const refused = await rollover(b, 'begin')
  t.match(refused, { code: 1, stdout: '' })
  const command = "'bramble-controller certificates rollover begin'"
  t.equal(
    refused.stderr,
    `The controller on this machine stands by, and ${a.apiUrl} leads: run ${command} on that machine\n`,
  )
  t.match(await rolloverIn(ofB), { stage: 'none', hash: a.caHash })

  const rotate = ({ command, dataDir }: Controller) => command('service-account-key', 'rotate', '--data-dir', dataDir)
  t.match(await rotate(b), {
    code: 1,
    stdout: '',
    stderr: `${a.apiUrl} leads: run 'bramble-controller service-account-key`,
  })
  t.match(await rotate(a), { code: 0, stdout: `Copy ${ofA} to the other controllers now, and restart them` })

  const begun = await rollover(a, 'begin')
  t.equal(begun.code, 0, begun.stderr)
  t.ok(begun.stdout.includes(`Copy ${ofA} to the other controllers now, and restart them (the fleet has ${a.apiUrl}`))
  const { next = '' } = await rolloverIn(ofA)
  // B has read its files before, and C gets none.
  await cp(ofA, ofB, { recursive: true })
  const changed = await rollover(a, 'change-over')
  t.equal(changed.code, 0, changed.stderr)
  t.equal(await published(b), next)

  await a.program.stop()
  // C may have won the election first.
  t.match(await b.program.logged('Authority follows the rollover of the fleet', 60_000), { step: 'change-over' })
  t.match(await b.program.logged('Controller ready', 60_000), { caHash: next })
  t.equal(await published(b), next)
  t.same(await rolloverIn(ofB), { stage: 'changed-over', hash: next, previous: a.caHash })

  await b.program.stop()
  t.equal(await c.program.ended, 78, 'it has no authority that may sign, and does not start again')
  t.match(c.program.lines.find(({ message }) => message === 'Controller failed')?.['error'], /is the previous one/)
  t.notOk(c.program.lines.some(({ message }) => message === 'Controller ready'))

  const again = await start(0, false)
  t.equal(again.caHash, next)
  t.equal(await published(again), next)
})
