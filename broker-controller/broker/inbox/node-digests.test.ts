import { test } from 'tap'
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'
import { nodeDigests } from './node-digests.ts'

test('the topics that are remembered of a node are bounded', async (t) => {
  const digests = nodeDigests()
  const differ = (count: number) => {
    digests.reset('pi-1')
    let digest = emptyDigest
    for (let topic = 0; topic < count; topic++) {
      digests.received('pi-1', `pods/${topic}`, '{}')
      digest = foldDigest(digest, digestText(`pods/${topic}`, '{}'))
    }
    return [digests.differs('pi-1', digest), digests.differs('pi-1', digest)]
  }
  t.same(differ(5000), [false, false])
  t.same(differ(5001), [false, true], 'a topic beyond the bound counts as lost')
})

test('a lease without a digest is compared by the last digest of the connection', (t) => {
  const digests = nodeDigests()
  t.equal(digests.differs('pi-1', undefined), false, 'there is no digest yet')
  digests.received('pi-1', 'status', '{}')
  const digest = foldDigest(emptyDigest, digestText('status', '{}'))
  t.equal(digests.differs('pi-1', digest), false)
  t.equal(digests.differs('pi-1', undefined), false)
  digests.lost('pi-1', 'status')
  t.same([digests.differs('pi-1', undefined), digests.differs('pi-1', undefined)], [false, true])
  digests.reset('pi-1')
  t.same([digests.differs('pi-1', undefined), digests.differs('pi-1', undefined)], [false, false])
  t.end()
})
