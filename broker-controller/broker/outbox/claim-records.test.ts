import { test } from 'tap'
import { readClaimRecord } from '../../../api/storage/claim-record.ts'
import { aStoredClaim, aStoredVolume } from '../../testing/volume-objects.ts'
import { claimRecords } from './claim-records.ts'

test('the record of a claim follows its volume, and its proof the authority', async (t) => {
  let proof = 'first'
  const recordOf = claimRecords({ proofOfRecord: () => proof })
  const [claim, volume] = [aStoredClaim('db'), aStoredVolume('pv')]
  const first = recordOf({ claim, volume })
  t.match(readClaimRecord(first?.text ?? ''), { volume: { spec: { capacity: { storage: '1Gi' } } } })
  proof = 'second'
  t.same(recordOf({ claim, volume }), { text: first?.text, proof: 'second' })
  const grown = aStoredVolume('pv', { spec: { capacity: { storage: '2Gi' } } })
  t.match(readClaimRecord(recordOf({ claim, volume: grown })?.text ?? ''), {
    volume: { spec: { capacity: { storage: '2Gi' } } },
  })
  const endless = aStoredVolume('pv', { spec: { mountOptions: ['x'.repeat(5000)] } })
  t.equal(recordOf({ claim, volume: endless }), undefined, 'too long')
})
