import { test } from 'tap'
import { nodeShare } from './node-share.ts'

test('messages of a node beyond its share are refused until earlier ones are handled', async (t) => {
  const share = nodeShare({ messages: 2, bytes: 100 })
  t.equal(share.take('pi-1', 10), true)
  t.equal(share.take('pi-1', 10), true)
  t.equal(share.take('pi-1', 10), false, 'a third one')
  t.equal(share.take('pi-2', 10), true, 'the share of another node is not affected')
  share.release('pi-1', 10)
  t.equal(share.take('pi-1', 95), false, 'more bytes than its share')
  t.equal(share.take('pi-1', 90), true)
  share.release('pi-1', 90)
  share.release('pi-1', 10)
  share.release('pi-1', 10)
  t.equal(share.take('pi-1', 100), true, 'everything was handled')
})
