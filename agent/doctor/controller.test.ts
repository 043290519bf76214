import { test } from 'tap'
import { verdicts } from '../testing/verdicts.ts'
import { type ControllerReading, controllerFindings } from './controller.ts'

const ours = { boardSerial: '1', machineID: 'same', model: 'Pi 4' }
const reached: ControllerReading = {
  nodeName: 'pi-01',
  apiHost: 'fleet:6443',
  mqttHost: 'fleet:8883',
  port: 'open',
  api: { status: 200, message: undefined, nodeHardware: ours, aheadMs: 0 },
  mqtt: 'open',
  hardware: ours,
}

test('the way to the controller, and the machine it means', async (t) => {
  const failure = { error: 'connect ECONNREFUSED', remedy: 'Start it' }
  const answered = (changes: object) => ({
    api: { status: 200, message: undefined, nodeHardware: ours, aheadMs: 0, ...changes },
  })
  const of = (changes: Partial<ControllerReading>) => controllerFindings({ ...reached, ...changes })
  t.same(verdicts(of({})), {
    'controller-port': 'ok',
    'controller-api': 'ok',
    'controller-clock': 'ok',
    hardware: 'ok',
    'mqtt-port': 'ok',
  })
  t.match(of({ port: failure, api: undefined, mqtt: failure }), [
    { check: 'controller-port', verdict: 'problem', found: /fleet:6443: connect ECONNREFUSED/, remedy: 'Start it' },
    { check: 'controller-api', verdict: 'unknown' },
    { check: 'mqtt-port', verdict: 'problem', found: /fleet:8883/ },
  ])
  t.match(of({ others: [{ host: 'second:6443', failure }] })[1], {
    check: 'controller-port',
    verdict: 'warning',
    found: /Another controller cannot be reached at second:6443/,
  })
  t.match(of({ api: failure })[1], { check: 'controller-api', verdict: 'problem' })
  t.match(of(answered({ status: 401, message: 'Unauthorized' }))[1], { verdict: 'problem', found: /Unauthorized/ })
  t.match(of(answered({ status: 404 }))[1], { verdict: 'warning', found: /no node pi-01/ })
  t.match(of(answered({ status: 503 }))[1], { verdict: 'problem', found: /503/ })
  t.match(of(answered({ nodeHardware: { ...ours, boardSerial: '2' } }))[3], {
    check: 'hardware',
    verdict: 'problem',
    found: /board serial 2.*this one is .*board serial 1/,
    remedy: /card was copied.*systemd-machine-id-setup/,
  })
  t.match(of(answered({ nodeHardware: { boardSerial: '2' } }))[3], { verdict: 'problem', remedy: /moved here/ })
  t.match(of(answered({ nodeHardware: undefined }))[3], { verdict: 'unknown' })
})
