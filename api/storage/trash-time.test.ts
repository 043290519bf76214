import { test } from 'tap'
import { trashProblem, trashSeconds } from './trash-time.ts'

test('the time in the trash is days, hours, or none', async (t) => {
  t.same(['30d', '12h', '0', '3650d'].map(trashSeconds), [30 * 86_400, 12 * 3600, 0, 3650 * 86_400])
  for (const wrong of ['', '7', '-1d', '0d', '01d', '1.5d', '7 d', '1w', '3651d', '99999d', '999999d', '7D', '00']) {
    t.equal(trashSeconds(wrong), undefined, wrong)
  }
})

test('a class with another value is refused, with the remedy', async (t) => {
  t.equal(trashProblem({}), undefined)
  t.equal(trashProblem({ trash: '30d' }), undefined)
  t.equal(
    trashProblem({ trash: 'never' }),
    'invalid value "never" for the parameter trash: use days or hours, like 30d or 12h, or 0',
  )
})
