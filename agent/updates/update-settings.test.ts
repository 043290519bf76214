import { test } from 'tap'
import { downloadRules } from './update-settings.ts'

test('a window and a budget are read', async (t) => {
  const problems: string[] = []
  t.same(downloadRules({}, true, problems), { isMetered: true })
  t.same(downloadRules({ window: '02:00-05:30', bytesPerDay: '10Mi' }, false, problems), {
    ...{ isMetered: false, window: { fromMinute: 120, toMinute: 330 }, bytesPerDay: 10 * 2 ** 20 },
  })
  t.same(downloadRules({ window: '23:00-01:00' }, false, problems).window, { fromMinute: 1380, toMinute: 60 })
  t.same(problems, [])
})

test('what is neither a window nor a budget is named', async (t) => {
  for (const window of ['', '2-5', '24:00-05:00', '02:60-05:00', '02:00-02:00', '02:00-05:00 Europe/Berlin']) {
    const problems: string[] = []
    t.same(downloadRules({ window }, false, problems), { isMetered: false })
    t.match(problems, [/agentUpdates\.window: .*like 02:00-05:00/], window)
  }
  for (const bytesPerDay of ['', 'much', '-1', '1Ki', '1e30']) {
    const problems: string[] = []
    t.same(downloadRules({ bytesPerDay }, false, problems), { isMetered: false })
    t.match(problems, [/agentUpdates\.bytesPerDay: .*like 10Mi/], bytesPerDay)
  }
})
