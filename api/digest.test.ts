import { test } from 'tap'
import { digestText } from './digest.ts'

test('the fingerprint of a message is the one that agents of earlier versions compute', async (t) => {
  t.equal(digestText('bramble/v1/nodes/pi-1/status', '{}'), 'e7198bc50392309f')
  t.equal(digestText('t', ''), '1f45110b9d6d5ea1')
  t.equal(digestText('t', 'grüße 🎉'), '8745b2716aa5fb63')
})
