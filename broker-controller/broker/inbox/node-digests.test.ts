import { test } from 'tap'
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'
import { nodeDigests } from './node-digests.ts'

test('a node that makes up topics without end is not remembered without end', async (t) => {
  const digests = nodeDigests()
  const said = (count: number) => {
    digests.forget('pi-1')
    let digest = emptyDigest
    for (let topic = 0; topic < count; topic++) {
      digests.heard('pi-1', `pods/${topic}`, '{}')
      digest = foldDigest(digest, digestText(`pods/${topic}`, '{}'))
    }
    return [digests.differs('pi-1', digest), digests.differs('pi-1', digest)]
  }
  t.same(said(5000), [false, false])
  t.same(said(5001), [false, true], 'what is beyond is as if it had been lost')
})

test('a lease without a digest is held against the one that was given last on the connection', (t) => {
  const digests = nodeDigests()
  t.equal(digests.differs('pi-1', undefined), false, 'nothing was given yet')
  digests.heard('pi-1', 'status', '{}')
  const digest = foldDigest(emptyDigest, digestText('status', '{}'))
  t.equal(digests.differs('pi-1', digest), false)
  t.equal(digests.differs('pi-1', undefined), false)
  digests.lost('pi-1', 'status')
  t.same([digests.differs('pi-1', undefined), digests.differs('pi-1', undefined)], [false, true])
  digests.forget('pi-1')
  t.same([digests.differs('pi-1', undefined), digests.differs('pi-1', undefined)], [false, false])
  t.end()
})
