import { test } from 'tap'
import { maintenanceKey } from '../../../api/node/fleet-maintenance.ts'
import { maintenanceCommands, maintenanceData } from '../../controllers/maintenance/maintenance-object.ts'
import { usualMaintenance } from '../../controllers/maintenance/maintenance-rules.ts'
import { nextMaintenance } from '../../controllers/maintenance/next-maintenance.ts'
import { aMachine, aMaintained, startMs } from '../../controllers/maintenance/testing/maintenance-nodes.ts'
import { maintenanceCommand, maintenanceRulesOf, maintenanceText, startMaintenance } from './maintenance-command.ts'
import type { OperatorApi } from './operator-map.ts'

const none = {
  ...{ window: undefined, 'per-link': undefined, 'per-zone': undefined },
  ...{ 'at-once': undefined, 'drain-timeout': undefined },
}
const map = (more: { readonly [key: string]: string } = {}) => ({
  ...{ apiVersion: 'v1' as const, kind: 'ConfigMap' as const, metadata: maintenanceKey },
  data: { ...maintenanceCommands.start({ ...usualMaintenance, window: '02:00-05:00' }), ...more },
})

test('without options the usual rules hold; with them they are checked', async (t) => {
  t.same(maintenanceRulesOf(none), usualMaintenance)
  t.match(maintenanceRulesOf({ ...none, window: '02:00-05:00', 'at-once': 5, 'per-zone': 2, 'drain-timeout': '1h' }), {
    ...{ window: '02:00-05:00', atOnce: 5, perZone: 2, drainSeconds: 3600 },
  })
  t.match(maintenanceRulesOf({ ...none, window: 'night' }), /window: "night" must be two times of day/)
  t.match(maintenanceRulesOf({ ...none, 'drain-timeout': 'soon' }), /--drain-timeout soon must be a duration/)
  t.match(maintenanceRulesOf({ ...none, 'drain-timeout': '25h' }), /drainSeconds: must be from 0 to 86400/)
})

test('a maintenance is started where there was one, and where there was none', async (t) => {
  const sent: string[] = []
  const answering = (status: number): OperatorApi => ({
    client: {
      get: async () => ({ status: 500, body: {}, dateHeader: undefined }),
      async patch(path, body) {
        sent.push(`patch ${path} ${Object.keys((body as { data: object }).data).join()}`)
        return { status, body: {}, dateHeader: undefined }
      },
      async post(path) {
        sent.push(`post ${path}`)
        return { status: 201, body: {}, dateHeader: undefined }
      },
    },
    signal: new AbortController().signal,
  })
  const path = '/api/v1/namespaces/kube-system/configmaps'
  t.match(await startMaintenance(usualMaintenance, answering(200)), /from now on/)
  await startMaintenance(usualMaintenance, answering(404))
  const patch = `patch ${path}/bramble-maintenance rules`
  t.same(sent, [patch, patch, `post ${path}`])
  await t.rejects(startMaintenance(usualMaintenance, answering(403)), { message: /Cannot start the maintenance/ })
})

test('the status shows what fails, what runs and what cannot be maintained', async (t) => {
  t.match(maintenanceText(undefined), /No maintenance was started/)
  t.match(maintenanceText(map()), /has not begun/)
  t.match(maintenanceText(map({ rules: '{}' })), /cannot be used/)
  const nodes = [
    aMaintained({ phase: 'Failed', reason: 'its upgrade failed: no space left' }),
    aMaintained({ phase: 'Upgrading', id: 'b2' }, { name: 'pi-2' }),
    aMachine({ name: 'pi-3', isCordoned: true }),
  ]
  const { state, status } = nextMaintenance({}, { rules: usualMaintenance, nodes, nowMs: startMs })
  t.equal(
    maintenanceText(map(maintenanceData(map(), state, status))),
    [
      'Paused. The maintenance of pi-1 failed: its upgrade failed: no space left',
      'Window: 02:00-05:00 UTC. Of 3 nodes 3 have security updates, 0 require a reboot, 0 wait.\n',
      'NODE   PHASE       SINCE                  MESSAGE',
      'pi-1   Failed      2026-01-02T02:59:00Z   its upgrade failed: no space left',
      'pi-2   Upgrading   2026-01-02T02:59:00Z\n',
      'Not maintained:',
      'NODE   REASON',
      'pi-3   it is cordoned by somebody\n',
    ].join('\n'),
  )
})

test('the help names all forms', async (t) => {
  const printed: string[] = []
  const output = {
    stdout: (text: string) => void printed.push(text),
    stderr: () => undefined,
    signal: new AbortController().signal,
  }
  t.equal(await maintenanceCommand(['--help'], output), 0)
  for (const form of ['start', 'status', 'pause', 'resume', '--window']) t.match(printed.join(''), form)
})
