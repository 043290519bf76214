import { isApiError } from '../../api/api-error.ts'

/** The reason for which the API refuses this; what it gives when it does not. */
export function refusal(act: () => unknown): string {
  try {
    return `no refusal: ${JSON.stringify(act())}`
  } catch (error) {
    if (isApiError(error)) return error.reason
    throw error
  }
}
