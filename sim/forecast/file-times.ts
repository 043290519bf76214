/** Times in the file of a simulation: spans, counted from the beginning of the story. */
import { invalid, type Problem } from '../../api/problem.ts'
import { formatDuration, parseDuration } from '../../daemon/duration.ts'

export interface Times {
  /** Milliseconds; 0 after a problem. */
  moment(field: string, text: string): number
  /** How long something lasts for a container. */
  span(field: string, text: string): number
  /** The length of the whole story, whose last event ends at `lastMs`. */
  duration(text: string | undefined, lastMs: number): number
}

const minuteMs = 60_000
const afterLastMs = 30 * minuteMs
const longestSpanMs = 24 * 60 * minuteMs
const longestMs = 7 * 24 * 60 * minuteMs

/** Adds what is wrong to `problems`. */
export function timesIn(problems: Problem[]): Times {
  const parsed = (field: string, text: string, mostMs: number) => {
    const ms = parseDuration(text)
    if (ms !== undefined && ms <= mostMs) return ms
    const remedy = `write a time like 90s, 10m or 26h, at most ${formatDuration(mostMs)}`
    problems.push(invalid(field, text, remedy))
    return 0
  }
  return {
    moment: (field, text) => parsed(field, text, longestMs),
    span: (field, text) => parsed(field, text, longestSpanMs),
    duration(text, lastMs) {
      if (text === undefined) return lastMs + afterLastMs
      const ms = parsed('duration', text, longestMs)
      if (ms < lastMs) {
        const remedy = `the last event of the story is over after ${formatDuration(lastMs)}: give a longer time, or leave it out`
        problems.push(invalid('duration', text, remedy))
      }
      return ms
    },
  }
}
