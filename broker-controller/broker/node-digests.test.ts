import { test } from 'tap'
import { digestText, emptyDigest, foldDigest } from '../../api/digest.ts'
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
