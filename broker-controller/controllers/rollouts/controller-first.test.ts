import { test } from 'tap'
import { waitForController } from './controller-first.ts'

test('nodes wait until the release of the controller is committed', async (t) => {
  const wanted = { version: '1.5.0' }
  t.match(waitForController(wanted, { version: '1.4.0', isOnTrial: false }), /runs 1\.4\.0\. Install 1\.5\.0/)
  t.match(waitForController(wanted, { version: '1.4.0', isOnTrial: true }), /runs 1\.4\.0/)
  t.match(waitForController(wanted, { version: '1.5.0', isOnTrial: true }), /1\.5\.0 is on trial/)
  t.equal(waitForController(wanted, { version: '1.5.0', isOnTrial: false }), undefined)
})

test('a rollout without a release of the controller waits for none', async (t) => {
  t.equal(waitForController(undefined, { version: '1.4.0', isOnTrial: true }), undefined)
})
