"""OAuth: sign-in, token refresh and token storage for remote servers."""
